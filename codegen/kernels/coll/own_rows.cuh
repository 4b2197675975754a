// coll.own_rows on CUDA: a block copies one row, in turns.
#pragma once
#include "codegen/kernels/coll/own_rows.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::own_rows {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int32_t own = args.own(c);
  const int64_t first = args.first(c);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *args.own_live = own;
  for (int64_t row = blockIdx.x; row < own; row += gridDim.x)
    copy_row<c.type>(element<c.type>(args.out, row * c.cols), element<c.type>(args.x, (first + row) * c.ld_x), c.cols,
                     threadIdx.x, t.threads());
}

} // namespace k31::kernels::own_rows
