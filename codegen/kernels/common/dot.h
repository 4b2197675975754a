// Register tiles of dot products: R rows of x with C rows of W along K, fp32 sums, 16 lanes an accumulator.
//
// Both operands are read along K, so weights stay in the checkpoint's layout and each W element is read once for R rows. bf16
// with bf16 is widened in pairs: 32 packed values give an even and an odd vector with one shift and one mask, half the work of
// widening lane by lane; a dot product does not mind the order.
#pragma once
#include "codegen/kernels/common/host.h"

namespace k31::kernels {

// What multiplies bf16 by bf16: 0 vectors of fp32, 1 AVX512-BF16, 2 AMX tiles as well. Set at specialisation, as k31_vector_bytes
// is. A kernel that names it gets code of its own for each; others share theirs.
extern "C" {
__attribute__((weak)) int32_t k31_bf16_products = 0;
}

// Rows of x in one tile. 4 x 4 accumulators and their operands fit 32 registers of 16 lanes; 6 x 4 spill in LLVM's schedule.
constexpr int kMaxTileRows = 4;
// AVX2 has half as many, half as wide: 3 x 2 accumulators of two registers leave four for operands, of one half at a time.
K31_INLINE int most_tile_rows() { return k31_vector_bytes >= 64 ? kMaxTileRows : 3; }

// The lane sums of four accumulators.
typedef float f32x4 __attribute__((ext_vector_type(4)));
K31_INLINE f32x4 lane_sums(f32x16 a, f32x16 b, f32x16 c, f32x16 d) {
  typedef float f32x8 __attribute__((ext_vector_type(8)));
  f32x8 ha = a.lo + a.hi, hb = b.lo + b.hi, hc = c.lo + c.hi, hd = d.lo + d.hi;
  f32x4 qa = ha.lo + ha.hi, qb = hb.lo + hb.hi, qc = hc.lo + hc.hi, qd = hd.lo + hd.hi;
  f32x4 ab = __builtin_shufflevector(qa, qb, 0, 4, 1, 5) + __builtin_shufflevector(qa, qb, 2, 6, 3, 7);
  f32x4 cd = __builtin_shufflevector(qc, qd, 0, 4, 1, 5) + __builtin_shufflevector(qc, qd, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

K31_INLINE f32x16 fma16(f32x16 a, f32x16 b, f32x16 c) { return __builtin_elementwise_fma(a, b, c); }

// acc + the products of 32 packed bf16 pairs, two of them a lane.
typedef __bf16 bf16x32 __attribute__((vector_size(64)));
K31_INLINE f32x16 dot_bf16(f32x16 acc, u32x16 a, u32x16 b) {
#if defined(__AVX512BF16__)
  typedef float f32x16_gcc __attribute__((vector_size(64)));
  return (f32x16)__builtin_ia32_dpbf16ps_512((f32x16_gcc)acc, (bf16x32)a, (bf16x32)b);
#else
  (void)a, (void)b;
  return acc; // a build for tests of the other paths
#endif
}

// Even and odd values of 32 packed bf16.
K31_INLINE f32x16 even_bf16(u32x16 pairs) { return (f32x16)(pairs << 16); }
K31_INLINE f32x16 odd_bf16(u32x16 pairs) { return (f32x16)(pairs & 0xffff0000u); }

// Halves of 16 lanes, for registers of 32 bytes.
typedef float f32x8 __attribute__((ext_vector_type(8)));
typedef uint32_t u32x8 __attribute__((ext_vector_type(8)));

// Of bf16 pairs, the lanes of dot_columns, a half of them at a time, so that R x C accumulators of two registers and what they
// multiply fit 16 registers: one row of x and all of W at once, or with one row one of W.
template <int R, int C>
K31_INLINE int64_t dot_bf16_narrow(const uint16_t *x, int64_t ld_x, const void *const *w, int64_t k, f32x16 (&acc)[R][C]) {
  f32x8 sum[R][C][2];
  K31_UNROLL for (int r = 0; r < R; ++r) { K31_UNROLL for (int c = 0; c < C; ++c) sum[r][c][0] = sum[r][c][1] = (f32x8)0.0f; }
  int64_t i = 0;
  for (; i + 32 <= k; i += 32) {
    K31_UNROLL for (int half = 0; half < 2; ++half) {
      K31_UNROLL for (int odd = 0; odd < 2; ++odd) {
        asm volatile("" ::: "memory"); // pairs are loaded again: kept for both they would not fit
        const auto widen = [&](const void *row) __attribute__((always_inline)) {
          u32x8 pairs = load_vector<u32x8>((const uint16_t *)row + i + half * 16);
          return (f32x8)(odd ? pairs & 0xffff0000u : pairs << 16);
        };
        f32x8 wv[C];
        if (R > 1)
          K31_UNROLL for (int c = 0; c < C; ++c) wv[c] = widen(w[c]);
        K31_UNROLL for (int r = 0; r < R; ++r) {
          const f32x8 xv = widen(x + r * ld_x);
          K31_UNROLL for (int c = 0; c < C; ++c) sum[r][c][half] =
              __builtin_elementwise_fma(xv, R > 1 ? wv[c] : widen(w[c]), sum[r][c][half]);
        }
      }
    }
  }
  K31_UNROLL for (int r = 0; r < R; ++r) {
    K31_UNROLL for (int c = 0; c < C; ++c) acc[r][c] =
        __builtin_shufflevector(sum[r][c][0], sum[r][c][1], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  return i;
}

// sums[r * ld_sums + c] = sum over k of x[r][k] w[c][k] for r < R, c < C. Rows of x are ld_x elements apart, rows of W are given
// one by one. A row's result does not depend on R or C: it is the same bit for bit alone and in a batch.
template <int R, int C>
K31_INLINE void dot_columns(const void *x, DType x_type, int64_t ld_x, const void *const *w, DType w_type, int64_t k, float *sums,
                            int64_t ld_sums) {
  static_assert(C == 2 || C == 4, "lane_sums takes four, half of them zeros");
  f32x16 acc[R][C];
  K31_UNROLL for (int r = 0; r < R; ++r) { K31_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = splat(0); }
  int64_t i = 0;
  if (x_type == DType::bf16 && w_type == DType::bf16 && k31_bf16_products) {
    for (; i + 32 <= k; i += 32) {
      u32x16 wv[C];
      K31_UNROLL for (int c = 0; c < C; ++c) wv[c] = load_vector<u32x16>((const uint16_t *)w[c] + i);
      K31_UNROLL for (int r = 0; r < R; ++r) {
        u32x16 xv = load_vector<u32x16>((const uint16_t *)x + r * ld_x + i);
        K31_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = dot_bf16(acc[r][c], xv, wv[c]);
      }
    }
  } else if (k31_vector_bytes < 64 && x_type == DType::bf16 && w_type == DType::bf16) {
    i = dot_bf16_narrow<R, C>((const uint16_t *)x, ld_x, w, k, acc);
  } else if (x_type == DType::bf16 && w_type == DType::bf16) {
    for (; i + 32 <= k; i += 32) {
      K31_UNROLL for (int odd = 0; odd < 2; ++odd) {
        f32x16 wv[C];
        K31_UNROLL for (int c = 0; c < C; ++c) {
          u32x16 pairs = load_vector<u32x16>((const uint16_t *)w[c] + i);
          wv[c] = odd ? odd_bf16(pairs) : even_bf16(pairs);
        }
        K31_UNROLL for (int r = 0; r < R; ++r) {
          u32x16 pairs = load_vector<u32x16>((const uint16_t *)x + r * ld_x + i);
          f32x16 xv = odd ? odd_bf16(pairs) : even_bf16(pairs);
          K31_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = fma16(xv, wv[c], acc[r][c]);
        }
      }
    }
  }
  auto step = [&](int n) __attribute__((always_inline)) {
    f32x16 wv[C];
    K31_UNROLL for (int c = 0; c < C; ++c) wv[c] = load_part(w[c], w_type, i, n);
    K31_UNROLL for (int r = 0; r < R; ++r) {
      f32x16 xv = load_part(x, x_type, r * ld_x + i, n);
      K31_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = fma16(xv, wv[c], acc[r][c]);
    }
  };
  for (; i + kLanes <= k; i += kLanes)
    step(kLanes);
  if (i < k)
    step((int)(k - i));
  K31_UNROLL for (int r = 0; r < R; ++r) {
    f32x4 s = lane_sums(acc[r][0], acc[r][1], C == 4 ? acc[r][C - 2] : splat(0), C == 4 ? acc[r][C - 1] : splat(0));
    memcpy(sums + r * ld_sums, &s, C * sizeof(float));
  }
}

// The same for four rows of W. AVX2 takes several rows of x by two and two.
template <int R>
K31_INLINE void dot_tile(const void *x, DType x_type, int64_t ld_x, const void *const *w, DType w_type, int64_t k, float *sums,
                         int64_t ld_sums) {
  if (R == 1 || k31_vector_bytes >= 64)
    return dot_columns<R, 4>(x, x_type, ld_x, w, w_type, k, sums, ld_sums);
  if (R > 3)
    return; // most_tile_rows: never asked for
  dot_columns<R, 2>(x, x_type, ld_x, w, w_type, k, sums, ld_sums);
  dot_columns<R, 2>(x, x_type, ld_x, w + 2, w_type, k, sums + 2, ld_sums);
}

// Rows of the next tile when `left` rows remain: as few tiles as possible, as equal as possible.
K31_INLINE int tile_rows(int64_t left, int most) {
  int64_t tiles = (left + most - 1) / most;
  return (int)((left + tiles - 1) / tiles);
}

// Rows of x that are worked on together, so that they stay in a core's second-level cache while rows of W pass by.
K31_INLINE int64_t block_rows(int64_t k, DType x_type) {
  int64_t rows = (512 << 10) / (k * bytes_of(x_type)) / kMaxTileRows * kMaxTileRows;
  return rows < kMaxTileRows ? kMaxTileRows : rows;
}

} // namespace k31::kernels
