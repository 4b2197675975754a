// moe.combine on CUDA: a thread sums 8 columns of one row over the choices, in order, in fp32. All loads of a row's choices are
// independent, so they are in flight together.
#pragma once
#include "codegen/kernels/common/cuda.cuh"
#include "codegen/kernels/moe/combine.tile.h"

namespace k31::kernels::combine {

template <Config c, int V> K31_DEVICE void sum_columns(const Args &args, int64_t row, int32_t col) {
  float sum[V] = {};
#pragma unroll 8
  for (int i = 0; i < c.top_k; ++i) {
    int64_t slot = args.slot(c)[row * c.top_k + i];
    if (slot < 0)
      continue;
    const float weight = c.weighted ? args.weights()[row * c.top_k + i] : 1;
    Raw<c.x_type, V> x;
    x.load(args.x, slot * c.ld_x + col);
#pragma unroll
    for (int v = 0; v < V; ++v)
      sum[v] += weight * x.get(v);
  }
  Raw<c.out_type, V> out;
  out.set(sum);
  out.store(args.out(c), row * c.ld_out + col);
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const LiveRows rows = args.rows(c);
  const int64_t live = rows.count();
  bool vectors = false;
  if constexpr (c.ld_x % 8 == 0 && c.ld_out % 8 == 0)
    vectors = aligned16(args.x) && aligned16(args.out(c));
  int32_t col = (blockIdx.x * t.threads() + threadIdx.x) * 8;
  for (int64_t i = blockIdx.y; i < live; i += gridDim.y) {
    const int64_t row = rows.row(i);
    if (vectors && col + 8 <= c.cols)
      sum_columns<c, 8>(args, row, col);
    else
      for (int v = 0; v < 8 && col + v < c.cols; ++v)
        sum_columns<c, 1>(args, row, col + v);
  }
}

} // namespace k31::kernels::combine
