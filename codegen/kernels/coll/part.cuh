// coll.part on CUDA: a block copies one row, in turns.
#pragma once
#include "codegen/kernels/coll/part.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::part {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int32_t live = *args.live, width = args.width(c);
  const int64_t begin = (int64_t)*args.coordinate * c.part;
  constexpr int kBytes = bytes_of_type(c.type);
  for (int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    if (width > 0)
      copy_row<c.type>(element<c.type>(args.out, row * c.part), element<c.type>(args.x, row * c.ld_x + begin), width, threadIdx.x,
                       t.threads());
    for (int32_t byte = width * kBytes + threadIdx.x; byte < c.part * kBytes; byte += t.threads())
      ((uint8_t *)element<c.type>(args.out, row * c.part))[byte] = 0;
  }
}

} // namespace k31::kernels::part
