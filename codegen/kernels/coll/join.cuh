// coll.join on CUDA: a block copies the columns of one rank of one row, in turns.
#pragma once
#include "codegen/kernels/coll/join.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::join {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int32_t live = *args.live, rank = blockIdx.y, begin = rank * c.part;
  for (int64_t row = blockIdx.x; row < live; row += gridDim.x)
    copy_row<c.type>(element<c.type>(args.out, row * c.cols + begin),
                     element<c.type>(args.x, ((int64_t)rank * c.capacity + row) * c.part), least(c.part, c.cols - begin),
                     threadIdx.x, t.threads());
}

} // namespace k31::kernels::join
