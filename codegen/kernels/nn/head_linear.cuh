// nn.head_linear on CUDA: a block takes one tile of rows by columns of one head, in the wide form of common/wide.cuh (W[h] by
// rows, or by columns when `transposed`; x in bf16 or fp32), or in the plain form.
#pragma once
#include "codegen/kernels/common/product.cuh"
#include "codegen/kernels/common/wide.cuh"
#include "codegen/kernels/nn/head_linear.tile.h"

namespace k31::kernels::head_linear {

// Stores the results of a tile whose first row is row0.
template <Config c> struct Finish {
  const Args &args;
  const int64_t &row0, &first_col; // of the head

  K31_DEVICE void operator()(int32_t row, int32_t col, float sum, float) const {
    store<c.out_type>(args.out, (row0 + row) * c.ld_out + first_col + col, sum);
  }
  // Columns col (even) and col + 1.
  K31_DEVICE void operator()(int32_t row, int32_t col, float sum, float, float next, float) const
    requires(c.x_type == DType::f32)
  {
    const int64_t to = (row0 + row) * c.ld_out + first_col + col;
    if (c.ld_out % 2 != 0 || ((uint64_t)args.out & (2 * bytes_of_type(c.out_type) - 1)) != 0)
      store<c.out_type>(args.out, to, sum), store<c.out_type>(args.out, to + 1, next);
    else if constexpr (c.out_type == DType::bf16)
      *(uint32_t *)((uint16_t *)args.out + to) = pack_bf16(sum, next);
    else
      *(float2 *)((float *)args.out + to) = make_float2(sum, next);
  }
};

template <DType T> K31_DEVICE auto values(const void *p, int64_t i) {
  if constexpr (T == DType::f32)
    return (const float *)p + i;
  else
    return (const uint16_t *)p + i;
}

// With `ahead`: the copies of W begin before the wait for the launches before.
template <Config c, Tile t> K31_DEVICE void start_early(const Args &args) {
  const uint16_t *w = (const uint16_t *)args.w + c.w_begin + (int64_t)blockIdx.y * c.head_w;
  if (aligned16(args.x) && aligned16(args.w)) {
    if constexpr (c.transposed)
      wide::start_weights<t, c.in>(wide::ColumnsOfW<t, c.out, c.in>{w}, blockIdx.x * t.bn);
    else
      wide::start_weights<t, c.in>(wide::RowsOfW<t, c.out, c.in>{w}, blockIdx.x * t.bn);
  }
  wait_for_launches();
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (t.ahead)
    start_early<c, t>(args);
  const int32_t live = *args.live, head = blockIdx.y, n0 = blockIdx.x * t.bn;
  const int64_t w_at = c.w_begin + (int64_t)head * c.head_w, x_at = (int64_t)head * c.head_x, out_at = (int64_t)head * c.out;
  if constexpr (t.form == kWide) {
    static_assert(tensor_cores_fit(c), "this Config needs the plain form");
    if (aligned16(args.x) && aligned16(args.w)) {
      const uint16_t *w = (const uint16_t *)args.w + w_at;
      for (int64_t row0 = (int64_t)blockIdx.z * t.bm; row0 < live; row0 += (int64_t)gridDim.z * t.bm) {
        const Finish<c> finish{args, row0, out_at};
        const auto *x = values<c.x_type>(args.x, row0 * c.ld_x + x_at);
        if constexpr (c.transposed)
          wide::tile<t, c.out, c.in, c.ld_x, false>(x, live - row0, wide::ColumnsOfW<t, c.out, c.in>{w}, n0, finish);
        else
          wide::tile<t, c.out, c.in, c.ld_x, false>(x, live - row0, wide::RowsOfW<t, c.out, c.in>{w}, n0, finish);
        if constexpr (t.ahead)
          return;
      }
      if constexpr (t.ahead)
        copy_wait<0>(); // no row for this block, but copies of W
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
