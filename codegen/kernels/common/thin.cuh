// Products with few rows of x, bound by the reading of W.
//
// A block takes bn rows of W (16, or 32 with `pair`) and all of K; its warps take turns at 128 columns. W is the left operand of
// m16n8k16, read from memory straight into registers: a lane's 16 bytes are 8 columns of one row, which serve as four register
// pairs of two products, since the order of k is free as long as x is read in the same way. x comes through the caches; the next
// turn's words are on their way while this one's are multiplied. The warps' sums meet in shared memory.
#pragma once
#include "codegen/kernels/common/mma.cuh"
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/common/reduce.cuh"

namespace k31::kernels::thin {

constexpr int kTurn = 128; // columns of one turn of a warp

// 16 bytes at `p`, or zeros.
K31_DEVICE uint4 load_or_zero(const uint16_t *p, bool there) { return there ? *(const uint4 *)p : make_uint4(0, 0, 0, 0); }

template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x> struct Turn {
  static constexpr int kM = t.bm / 8, kN = t.bn / 16, kSteps = kTurn / 32;
  uint4 w[kSteps][kN][2], x[kSteps][kM];

  K31_DEVICE void load(const uint16_t *xs, const uint16_t *ws, int32_t rows, int32_t n0, int32_t k0) {
    const int g = lane_id() / 4, at = k0 + lane_id() % 4 * 8;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const int32_t col = at + s * 32;
#pragma unroll
      for (int i = 0; i < kN; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int32_t row = n0 + i * 16 + half * 8 + g;
          w[s][i][half] = col < k && row < n_rows ? load_streamed(ws + (int64_t)row * k + col) : make_uint4(0, 0, 0, 0);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        int32_t row = m * 8 + g;
        x[s][m] = load_or_zero(xs + (int64_t)row * ld_x + at + s * 32, row < rows && at + s * 32 < k);
      }
    }
  }
  K31_DEVICE void multiply(float (&sum)[kN][kM][4]) const {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int i = 0; i < kN; ++i) {
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          mma_bf16(sum[i][m], w[s][i][0].x, w[s][i][1].x, w[s][i][0].y, w[s][i][1].y, x[s][m].x, x[s][m].y);
          mma_bf16(sum[i][m], w[s][i][0].z, w[s][i][1].z, w[s][i][0].w, w[s][i][1].w, x[s][m].z, x[s][m].w);
        }
      }
    }
  }
};

// Adds the warps' sums and calls finish(row, output column, sum, second sum) for each element of the first `rows` rows.
template <ProductTile t, int32_t n_rows, bool pair, class Finish>
K31_DEVICE void finish_tile(const float (&sum)[t.bn / 16][t.bm / 8][4], int32_t rows, int32_t n0, const Finish &finish) {
  constexpr int kM = t.bm / 8, kN = t.bn / 16, kWarps = t.block / 32, kSize = t.bm * t.bn;
  float *partial = (float *)shared_memory(); // [warps, bm, bn]
  const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
  for (int i = 0; i < kN; ++i) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        partial[warp_id() * kSize + (m * 8 + 2 * q + e % 2) * t.bn + i * 16 + g + e / 2 * 8] = sum[i][m][e];
    }
  }
  __syncthreads();
  constexpr int kCols = pair ? t.bn / 2 : t.bn;
  for (int i = threadIdx.x; i < t.bm * kCols; i += t.block) {
    int r = i / kCols, col = i % kCols, n = pair ? col / 16 * 32 + col % 16 : col;
    float first = 0, second = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      first += partial[w * kSize + r * t.bn + n];
      if constexpr (pair)
        second += partial[w * kSize + r * t.bn + n + 16];
    }
    if (r < rows && n0 + n < n_rows)
      finish(r, (pair ? n0 / 2 : n0) + col, first, second);
  }
  __syncthreads();
}

// One tile: `rows` rows of x (at most bm count) by bn rows of W from n0 on. finish(row of the tile, output column, sum, second).
template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair, class Finish>
K31_DEVICE void tile(const uint16_t *x, int32_t rows, const uint16_t *w, int32_t n0, const Finish &finish) {
  static_assert(t.bm % 8 == 0 && t.bn % 16 == 0 && (!pair || t.bn % 32 == 0), "tiles of whole products");
  constexpr int32_t kStride = t.block / 32 * kTurn;
  using T = Turn<t, n_rows, k, ld_x>;
  float sum[T::kN][T::kM][4] = {};
  T now, next;
  int32_t k0 = warp_id() * kTurn;
  now.load(x, w, rows, n0, k0);
  for (; k0 < k; k0 += kStride) {
    next.load(x, w, rows, n0, k0 + kStride);
    now.multiply(sum);
    now = next;
  }
  finish_tile<t, n_rows, pair>(sum, rows, n0, finish);
}

} // namespace k31::kernels::thin
