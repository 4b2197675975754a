// coll.rows on CUDA: a block copies one row, in turns.
#pragma once
#include "codegen/kernels/coll/rows.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::rows {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int32_t live = *args.live;
  const int64_t first = (int64_t)*args.coordinate * c.share;
  for (int64_t row = blockIdx.x; row < live; row += gridDim.x)
    copy_row<c.type>(element<c.type>(args.out, row * c.cols), element<c.type>(args.x, (first + row) * c.ld_x), c.cols,
                     threadIdx.x, t.threads());
}

} // namespace k31::kernels::rows
