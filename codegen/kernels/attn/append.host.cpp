// Host kernel of attn.append: tasks share the live rows; each row goes to its own place in the cache.
#include "codegen/kernels/attn/append.h"
#include "codegen/kernels/common/host.h"

namespace k31::kernels::append {
extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const Batch &batch = args->batch;
  Range rows = share(batch.counts[0], task, tasks);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    int64_t s = batch.row_segment[r];
    int64_t to = cache_row(batch.block_table + s * c.blocks, position_of(batch.segments[s], r)) * c.width + c.begin;
    int64_t from = r * c.ld_x;
    if (c.x_type == c.cache_type) {
      int64_t size = bytes_of(c.x_type);
      memcpy((char *)args->pages + to * size, (const char *)args->x + from * size, c.cols * size);
      continue;
    }
    for (int i = 0; i < c.cols; i += kLanes) {
      int n = c.cols - i < kLanes ? c.cols - i : kLanes;
      store_part(args->pages, c.cache_type, to + i, load_part(args->x, c.x_type, from + i, n), n);
    }
  }
}

} // namespace k31::kernels::append
