// nn.head_linear on CUDA: a block takes one tile of rows by columns of one head, in the wide form of common/wide.cuh (W[h] by
// rows, or by columns when `transposed`), or in the plain form.
#pragma once
#include "codegen/kernels/common/product.cuh"
#include "codegen/kernels/common/wide.cuh"
#include "codegen/kernels/nn/head_linear.tile.h"

namespace k31::kernels::head_linear {

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int32_t live = *args.live, head = blockIdx.y, n0 = blockIdx.x * t.bn;
  const int64_t w_at = c.w_begin + (int64_t)head * c.head_w, x_at = (int64_t)head * c.head_x, out_at = (int64_t)head * c.out;
  if constexpr (t.form == kWide) {
    static_assert(tensor_cores_fit(c), "this Config needs the plain form");
    if (aligned16(args.x) && aligned16(args.w)) {
      using namespace wide;
      const uint16_t *w = (const uint16_t *)args.w + w_at;
      for (int64_t row0 = (int64_t)blockIdx.z * t.bm; row0 < live; row0 += (int64_t)gridDim.z * t.bm) {
        auto finish = [&](int32_t row, int32_t col, float sum, float) {
          store<c.out_type>(args.out, (row0 + row) * c.ld_out + out_at + col, sum);
        };
        const uint16_t *x = (const uint16_t *)args.x + row0 * c.ld_x + x_at;
        if constexpr (c.transposed)
          tile<t, c.out, c.in, c.ld_x, false>(x, live - row0, ColumnsOfW<t, c.out, c.in>{w}, n0, finish);
        else
          tile<t, c.out, c.in, c.ld_x, false>(x, live - row0, RowsOfW<t, c.out, c.in>{w}, n0, finish);
      }
      return;
    }
  }
  for (int64_t row0 = (int64_t)blockIdx.z * kPlainRows; row0 < live; row0 += (int64_t)gridDim.z * kPlainRows)
    for (int32_t first = n0; first < n0 + t.bn && first < c.out; first += kPlainCols)
      plain_tile<t.block, false>(
          c.in, [&](int r, int k) { return row0 + r < live ? load<c.x_type>(args.x, (row0 + r) * c.ld_x + x_at + k) : 0.0f; },
          [&](int n, int k) {
            int64_t at = c.transposed ? (int64_t)k * c.out + first + n : (int64_t)(first + n) * c.in + k;
            return first + n < c.out ? load<c.w_type>(args.w, w_at + at) : 0.0f;
          },
          [&](int r, int n, float sum, float) {
            if (row0 + r < live && first + n < c.out)
              store<c.out_type>(args.out, (row0 + r) * c.ld_out + out_at + first + n, sum);
          });
}

} // namespace k31::kernels::head_linear
