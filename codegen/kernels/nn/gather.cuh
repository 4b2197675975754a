// nn.gather on CUDA: a block copies one row an index, in turns.
#pragma once
#include "codegen/kernels/common/cuda.cuh"
#include "codegen/kernels/nn/gather.tile.h"

namespace k31::kernels::gather {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int32_t live = *args.live;
  for (int64_t row = blockIdx.x; row < live; row += gridDim.x)
    copy_row<c.type>(element<c.type>(args.out, row * c.ld_out), element<c.type>(args.x, (int64_t)args.index[row] * c.ld_x),
                     c.cols, threadIdx.x, t.threads());
}

} // namespace k31::kernels::gather
