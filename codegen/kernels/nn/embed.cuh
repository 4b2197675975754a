// nn.embed on CUDA: a block copies (or converts) one row a token, in turns. A token outside the vocabulary gives a row of zeros.
#pragma once
#include "codegen/kernels/common/cuda.cuh"
#include "codegen/kernels/nn/embed.tile.h"

namespace k31::kernels::embed {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int32_t live = *args.live;
  for (int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    int32_t token = args.tokens[row];
    void *to = element<c.out_type>(args.out, row * c.hidden);
    const void *from = element<c.table_type>(args.table, (int64_t)token * c.hidden);
    if (token < 0 || token >= c.vocab) {
      for (int32_t i = threadIdx.x; i < c.hidden; i += t.threads())
        store<c.out_type>(to, i, 0.0f);
    } else if constexpr (c.table_type == c.out_type) {
      copy_row<c.out_type>(to, from, c.hidden, threadIdx.x, t.threads());
    } else {
      for (int32_t i = threadIdx.x; i < c.hidden; i += t.threads())
        store<c.out_type>(to, i, load<c.table_type>(from, i));
    }
  }
}

} // namespace k31::kernels::embed
