// attn.batch_rows on CUDA: the threads of one block take segments and rows in turns.
#pragma once
#include "codegen/kernels/attn/batch_rows.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::batch_rows {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const Batch &whole = args.batch;
  const int64_t first = (int64_t)*args.coordinate * c.share;
  const int32_t live = c.live(whole.counts[0], first), segments = whole.counts[1];
  if (threadIdx.x < 4)
    args.counts[threadIdx.x] = threadIdx.x == 0 ? live : threadIdx.x == 1 ? segments : 0;
  for (int32_t s = threadIdx.x; s < segments; s += t.threads())
    args.segments[s] = c.part(whole.segments[s], first);
  for (int32_t row = threadIdx.x; row < c.share; row += t.threads())
    args.row_segment[row] = row < live ? whole.row_segment[first + row] : -1;
}

} // namespace k31::kernels::batch_rows
