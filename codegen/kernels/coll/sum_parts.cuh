// coll.sum_parts on CUDA: a thread adds 8 columns of one row over the ranks, in order, in fp32.
#pragma once
#include "codegen/kernels/coll/sum_parts.tile.h"
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels::sum_parts {

template <Config c, int V> K31_DEVICE void add_columns(const Args &args, int64_t row, int32_t col) {
  float sum[V] = {};
#pragma unroll 4
  for (int64_t rank = 0; rank < c.size; ++rank) {
    const int64_t slot = args.slot[row * c.size + rank];
    if (slot < 0)
      continue;
    Raw<c.type, V> x;
    x.load(args.x, (rank * c.room + slot) * c.cols + col);
#pragma unroll
    for (int v = 0; v < V; ++v)
      sum[v] += x.get(v);
  }
  Raw<c.type, V> out;
  out.set(sum);
  out.store(args.out, row * c.cols + col);
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const LiveRows rows = args.rows(c);
  const int64_t live = rows.count();
  bool vectors = false;
  if constexpr (c.cols % 8 == 0)
    vectors = aligned16(args.x) && aligned16(args.out);
  const int32_t col = (blockIdx.x * t.threads() + threadIdx.x) * 8;
  for (int64_t i = blockIdx.y; i < live; i += gridDim.y) {
    const int64_t row = rows.row(i);
    if (vectors && col + 8 <= c.cols)
      add_columns<c, 8>(args, row, col);
    else
      for (int v = 0; v < 8 && col + v < c.cols; ++v)
        add_columns<c, 1>(args, row, col + v);
  }
}

} // namespace k31::kernels::sum_parts
