// Products with many rows of x: tiles of bm rows of x by bn rows of W, 64 columns of K a stage.
//
// Stages live in shared memory in the layout of the 128-byte swizzle: a row is 8 words of 16 bytes, word w of row r at place
// w ^ (r % 8), so that neither the asynchronous copies nor the fragments' loads meet in a bank.
//
// x is bf16, or fp32: then each value becomes two of bf16 in registers, hi = bf16(x) and lo = bf16(x - hi), and both are
// multiplied by the same fragments of W. hi + lo is x to 2^-17, so the sums stay those of fp32.
// One barrier a stage: it frees the oldest stage and shows the newest. Tiles are taken eight rows of tiles at a time, so that the
// blocks at work together share x and W in the second-level cache.
#pragma once
#include "codegen/kernels/common/mma.cuh"
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/common/reduce.cuh"

namespace k31::kernels::wide {

constexpr int kDepth = 64; // columns of a stage: 128 bytes
constexpr int kGroup = 8;  // rows of tiles taken together

K31_DEVICE unsigned char *word_at(unsigned char *tile, int row, int word) { return tile + row * 128 + ((word ^ row) & 7) * 16; }
// The same for fp32, 16 words a row: a half warp reads 32 bytes of four rows at once, so whole pairs of words change places.
K31_DEVICE unsigned char *word_at_fp32(unsigned char *tile, int row, int word) {
  return tile + row * 256 + (word ^ row % 4 * 2) * 16;
}
K31_DEVICE unsigned char *aligned_shared() {
  unsigned char *p = shared_memory();
  return p + (1024 - shared_address(p) % 1024) % 1024;
}

// Starts the copies of 64 columns from k0 on of `Rows` rows; rows past `rows` and columns past k become zeros.
// `steps`: rows of a thread are a fixed distance apart, so that its addresses differ by constants.
template <int Threads, int Rows, int32_t k, int32_t ld, bool steps = false, class T>
K31_DEVICE void copy_rows(unsigned char *tile, const T *from, int32_t rows, int32_t k0) {
  if constexpr (steps) {
    constexpr int kValues = 16 / sizeof(T), kWords = kDepth / kValues, kStep = Threads / kWords; // of a word, of a row
    static_assert(Threads % 64 == 0, "places of words repeat each eight rows, of fp32 each four");
    const int row = threadIdx.x / kWords, word = threadIdx.x % kWords;
    const bool column = k0 + word * kValues < k;
    const T *at = from + (int64_t)row * ld + k0 + word * kValues; // a copy of no bytes may have any address
    unsigned char *to = sizeof(T) == 2 ? word_at(tile, row, word) : word_at_fp32(tile, row, word);
#pragma unroll
    for (int i = 0; i < (Rows + kStep - 1) / kStep; ++i)
      if (Rows % kStep == 0 || row + i * kStep < Rows)
        copy_async16(to + i * Threads * 16, at + (int64_t)i * kStep * ld, column && row + i * kStep < rows ? 16 : 0);
  } else {
#pragma unroll
    for (int i = 0; i < (Rows * 8 + Threads - 1) / Threads; ++i) {
      int at = i * Threads + threadIdx.x, row = at / 8, word = at % 8;
      bool there = row < rows && k0 + word * 8 < k;
      if (Rows * 8 % Threads == 0 || at < Rows * 8)
        copy_async16(word_at(tile, row, word), there ? from + (int64_t)row * ld + k0 + word * 8 : from, there ? 16 : 0);
    }
  }
}

// Fragments of 16 rows of x from `row` on by 16 columns, the step-th of a stage: of bf16 one, of fp32 hi and lo.
K31_DEVICE void load_x(uint32_t (&a)[1][4], unsigned char *tile, int row, int step) {
  load_matrices(a[0], word_at(tile, row + lane_id() % 16, step * 2 + lane_id() / 16));
}
K31_DEVICE void load_x(uint32_t (&a)[2][4], unsigned char *tile, int row, int step) {
  const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) { // rows g, g + 8; columns 2q, 2q + 8
    const float2 v = *(const float2 *)(word_at_fp32(tile, row + i % 2 * 8 + g, step * 4 + i / 2 * 2 + q / 2) + q % 2 * 8);
    a[0][i] = pack_bf16(v.x, v.y);
    a[1][i] = pack_bf16(v.x - bf16_low(a[0][i]), v.y - bf16_high(a[0][i]));
  }
}

// Sums of a warp's part, (bm / warps_m) x (bn / warps_n), by products of a warp.
template <ProductTile t> struct Sums {
  static constexpr int kRows = t.bm / t.warps_m, kCols = t.bn / t.warps_n, kM = kRows / 16, kN = kCols / 8;
  static constexpr int kAhead = t.stages - 1;               // stages that are on their way during a product
  static constexpr int kParts = t.x_bytes / 2;              // values of bf16 for one of x
  static constexpr int kShare = 32 * t.warps_m * t.warps_n; // threads that share the columns of a stage
  float sum[kM][kN][4];

  K31_DEVICE int warp() const { return t.warps_k == 1 ? warp_id() : warp_id() % (t.warps_m * t.warps_n); } // of the tile
  K31_DEVICE int first_row() const { return warp() / t.warps_n * kRows; }
  K31_DEVICE int first_col() const { return warp() % t.warps_n * kCols; }
  K31_DEVICE int first_step() const { return t.warps_k == 1 ? 0 : threadIdx.x / kShare; }
  K31_DEVICE void clear() {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n)
        sum[m][n][0] = sum[m][n][1] = sum[m][n][2] = sum[m][n][3] = 0;
    }
  }
  // `transposed`: the stage of W holds rows of k in blocks of 64 columns instead of rows of n.
  template <bool transposed> K31_DEVICE void multiply(unsigned char *x, unsigned char *w) {
    const int lane = lane_id();
#pragma unroll
    for (int turn = 0; turn < kDepth / 16 / t.warps_k; ++turn) {
      const int step = turn * t.warps_k + first_step();
      uint32_t a[kM][kParts][4], b[kN / 2][4];
#pragma unroll
      for (int m = 0; m < kM; ++m)
        load_x(a[m], x, first_row() + m * 16, step);
#pragma unroll
      for (int n = 0; n < kN / 2; ++n) {
        if constexpr (transposed) {
          int col = first_col() + n * 16;
          load_matrices_transposed(b[n], word_at(w + col / 64 * 8192, step * 16 + lane % 16, col % 64 / 8 + lane / 16));
        } else {
          load_matrices(b[n], word_at(w, first_col() + n * 16 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2));
        }
      }
#pragma unroll
      for (int i = 0; i < kM * kParts; ++i) {
        const uint32_t (&left)[4] = a[i % kM][kParts - 1 - i / kM]; // the small ones first
#pragma unroll
        for (int n = 0; n < kN; ++n)
          mma_bf16(sum[i % kM][n], left[0], left[1], left[2], left[3], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
      }
    }
  }
  // The first threads get the sums of those that had other columns of K; true for them. The stages must be free.
  K31_DEVICE bool meet(float *shared) { // [warps_k - 1, kM * kN * 4, kShare]
    constexpr int kSums = kM * kN * 4;
    const int share = threadIdx.x / kShare, thread = threadIdx.x % kShare;
    float *own = &sum[0][0][0];
    if (share > 0) {
#pragma unroll
      for (int i = 0; i < kSums; ++i)
        shared[((share - 1) * kSums + i) * kShare + thread] = own[i];
    }
    __syncthreads();
    if (share > 0)
      return false;
#pragma unroll
    for (int s = 0; s < t.warps_k - 1; ++s) {
#pragma unroll
      for (int i = 0; i < kSums; ++i)
        own[i] += shared[(s * kSums + i) * kShare + thread];
    }
    return true;
  }
};

// finish(row of the tile, output column, sum, second sum) for each sum of the first `rows` rows; or for two neighbours at once,
// finish(row, column, sum, second, next sum, next second), if `finish` can take them: the number of columns is even then.
template <ProductTile t, int32_t n_rows, bool pair, class Finish>
K31_DEVICE void finish_sums(const Sums<t> &s, int32_t rows, int32_t n0, const Finish &finish) {
  using S = Sums<t>;
  static_assert(!pair || S::kCols % 32 == 0, "a warp has both sums of a pair");
  constexpr bool kTwo = !pair && requires { finish(0, 0, 0.0f, 0.0f, 0.0f, 0.0f); };
  static_assert(!kTwo || n_rows % 2 == 0, "two columns at once");
  const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
  for (int m = 0; m < S::kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int32_t row = s.first_row() + m * 16 + half * 8 + g;
      if (row < rows) {
#pragma unroll
        for (int n = 0; n < S::kN; ++n) {
          if (pair && n % 4 >= 2)
            continue;
          const int32_t first = n0 + s.first_col() + n * 8 + 2 * q;
          if constexpr (kTwo) {
            if (first < n_rows)
              finish(row, first, s.sum[m][n][half * 2], 0.0f, s.sum[m][n][half * 2 + 1], 0.0f);
          } else {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              int32_t at = first + e;
              if (at < n_rows)
                finish(row, pair ? at / 32 * 16 + at % 16 : at, s.sum[m][n][half * 2 + e],
                       pair ? s.sum[m][n + (pair ? 2 : 0)][half * 2 + e] : 0.0f);
            }
          }
        }
      }
    }
  }
}

// The tile with number `id` of rows x cols tiles: kGroup rows of tiles at a time, column by column.
K31_DEVICE void place_of(int64_t id, int32_t rows, int32_t cols, int32_t &row, int32_t &col) {
  int64_t group = id / ((int64_t)kGroup * cols), in_group = id % ((int64_t)kGroup * cols);
  int32_t height = least(rows - group * kGroup, kGroup);
  row = (int32_t)(group * kGroup + in_group % height), col = (int32_t)(in_group / height);
}

// Where W comes from: starts the copies of one stage (block of kDepth columns of K) for rows n0 .. n0 + bn.
template <ProductTile t, int32_t n_rows, int32_t k> struct RowsOfW { // [n_rows, k]
  static constexpr bool kTransposed = false;
  const uint16_t *w;
  K31_DEVICE void start(unsigned char *stage, int32_t n0, int32_t k0) const {
    copy_rows<t.block, t.bn, k, k, t.x_bytes == 4>(stage, w + (int64_t)n0 * k, n_rows - n0, k0);
  }
};
template <ProductTile t, int32_t n_rows, int32_t k> struct ColumnsOfW { // [k, n_rows]
  static constexpr bool kTransposed = true;
  const uint16_t *w;
  K31_DEVICE void start(unsigned char *stage, int32_t n0, int32_t k0) const {
    static_assert(t.bn % 64 == 0, "blocks of 64 columns");
#pragma unroll
    for (int j = 0; j < t.bn / 64; ++j)
      copy_rows<t.block, kDepth, n_rows, n_rows, t.x_bytes == 4>(stage + j * 8192, w + (int64_t)k0 * n_rows, k - k0, n0 + j * 64);
  }
};

// With `ahead`: the first stages of W, before the wait for the launches before.
template <ProductTile t, int32_t k, class Weights> K31_DEVICE void start_weights(const Weights &w, int32_t n0) {
  for (int s = 0; s < Sums<t>::kAhead && s * kDepth < k; ++s)
    w.start(aligned_shared() + s * t.stage_bytes() + t.bm * t.x_bytes * 64, n0, s * kDepth);
}

// One tile: `rows` rows of x (of which the first bm count) by bn rows of W from n0 on. X: uint16_t (bf16) or float.
template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair, class X, class Weights, class Finish>
K31_DEVICE void tile(const X *x, int32_t rows, const Weights &w, int32_t n0, const Finish &finish) {
  static_assert(t.block == 32 * t.warps_m * t.warps_n * t.warps_k && Sums<t>::kAhead >= 1, "every warp has a part of the tile");
  static_assert(sizeof(X) == t.x_bytes && kDepth / 16 % t.warps_k == 0, "stages of x as the tile says");
  static_assert((t.warps_k - 1) * t.bm * t.bn * 4 <= t.stages * t.stage_bytes(), "sums take the place of the stages");
  constexpr int32_t kStages = t.stages, kBlocks = (int32_t)ceil_div(k, kDepth), kOfX = t.bm * t.x_bytes * 64;
  unsigned char *shared = aligned_shared();
  auto start = [&](int32_t block, bool with_w) { // always a group, so that counts stay right
    if (block < kBlocks) {
      unsigned char *stage = shared + block % kStages * t.stage_bytes();
      copy_rows<t.block, t.bm, k, ld_x, t.x_bytes == 4>(stage, x, rows, block * kDepth);
      if (with_w)
        w.start(stage + kOfX, n0, block * kDepth);
    }
    copy_commit();
  };
  Sums<t> sums;
  sums.clear();
  for (int s = 0; s < Sums<t>::kAhead; ++s)
    start(s, !t.ahead);
  for (int32_t block = 0; block < kBlocks; ++block) {
    copy_wait<Sums<t>::kAhead - 1>();
    __syncthreads();
    start(block + Sums<t>::kAhead, true); // into a stage that all warps left before the barrier
    unsigned char *stage = shared + block % kStages * t.stage_bytes();
    sums.template multiply<Weights::kTransposed>(stage, stage + kOfX);
  }
  copy_wait<0>();
  __syncthreads();
  if constexpr (t.warps_k > 1) {
    const bool has_sums = sums.meet((float *)shared);
    if (has_sums)
      finish_sums<t, n_rows, pair>(sums, rows, n0, finish);
    __syncthreads();
  } else {
    finish_sums<t, n_rows, pair>(sums, rows, n0, finish);
  }
}

} // namespace k31::kernels::wide
