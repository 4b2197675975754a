// coll.unpack on CUDA: a block copies one row of its piece, in turns.
#pragma once
#include "codegen/kernels/coll/unpack.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::unpack {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  constexpr PieceForm form = c.form();
  const int32_t piece = blockIdx.y, count = *(const int32_t *)form.count(args.pieces, piece);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    args.live[piece] = count;
  for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
    const int64_t to = (int64_t)piece * c.capacity + row;
    copy_row<DType::i32>(args.ids + to * c.top_k, form.ids(args.pieces, piece, row), c.top_k, threadIdx.x, t.threads());
    copy_row<DType::f32>(args.weights + to * c.top_k, form.weights(args.pieces, piece, row), c.top_k, threadIdx.x, t.threads());
    copy_row<c.type>(element<c.type>(args.out, to * c.cols), form.values(args.pieces, piece, row), c.cols, threadIdx.x,
                     t.threads());
  }
}

} // namespace k31::kernels::unpack
