// attn.batch_rows on the host: some numbers, by one task.
#include "codegen/kernels/attn/batch_rows.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using batch_rows::Args, batch_rows::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t) {
  if (task > 0)
    return;
  const Config &c = k31_config;
  const Batch &whole = args->batch;
  const int64_t first = (int64_t)*args->coordinate * c.share;
  const int32_t live = c.live(whole.counts[0], first), segments = whole.counts[1];
  args->counts[0] = live, args->counts[1] = segments, args->counts[2] = args->counts[3] = 0;
  for (int32_t s = 0; s < segments; ++s)
    args->segments[s] = c.part(whole.segments[s], first);
  for (int32_t row = 0; row < c.share; ++row)
    args->row_segment[row] = row < live ? whole.row_segment[first + row] : -1;
}
