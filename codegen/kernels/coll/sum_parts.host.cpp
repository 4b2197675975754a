// coll.sum_parts on the host: each task takes its share of the rows, 16 columns at a time.
#include "codegen/kernels/coll/sum_parts.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using sum_parts::Args, sum_parts::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const LiveRows rows = args->rows(c);
  Range mine = share(rows.count(), task, tasks);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t row = rows.row(i);
    for (int64_t col = 0; col < c.cols; col += kLanes) {
      const int n = c.cols - col < kLanes ? (int)(c.cols - col) : kLanes;
      f32x16 acc = splat(0);
      for (int64_t rank = 0; rank < c.size; ++rank)
        if (const int64_t slot = args->slot[row * c.size + rank]; slot >= 0)
          acc += load_part(args->x, c.type, (rank * c.room + slot) * c.cols + col, n);
      store_part(args->out, c.type, row * c.cols + col, acc, n);
    }
  }
}
