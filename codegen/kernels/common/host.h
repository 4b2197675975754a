// What the host kernels share: 16-lane vectors, typed loads and stores, exponentials, the work split.
//
// Kernels are compiled to bitcode once and specialised later: `k31_config` becomes a constant, so a branch on one of its fields
// costs nothing, but it is no constant expression: no array may have its size. Target features arrive at specialisation too;
// 16 lanes are one AVX-512 register or two AVX2 ones.
#pragma once
#include "codegen/kernels/common/region.h"
#include "codegen/kernels/common/types.h"
#include <cstdint>
#include <cstring>

namespace k31::kernels {

typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef int32_t i32x16 __attribute__((ext_vector_type(16)));
typedef uint32_t u32x16 __attribute__((ext_vector_type(16)));
typedef uint16_t u16x16 __attribute__((ext_vector_type(16)));
typedef uint8_t u8x16 __attribute__((ext_vector_type(16)));

#define K31_INLINE __attribute__((always_inline)) static inline
// Before a loop over Config fields or over a register tile: unrolled once its trip count is constant.
#define K31_UNROLL _Pragma("clang loop unroll(full)")

// Bytes of the target's vector registers. Specialisation may set it to 32 (16 registers of AVX2) before it makes it a constant;
// a register tile that fits 32 registers of 64 bytes would spill there. Not const here: the front end would fold it.
extern "C" {
__attribute__((weak)) int32_t k31_vector_bytes = 64;
}

K31_INLINE int64_t bytes_of(DType t) { return t == DType::bf16 ? 2 : t == DType::f32 || t == DType::i32 ? 4 : 1; }
K31_INLINE const void *element(const void *p, DType t, int64_t i) { return (const char *)p + i * bytes_of(t); }
K31_INLINE void *element(void *p, DType t, int64_t i) { return (char *)p + i * bytes_of(t); }

// ---- scalars
K31_INLINE float bf16_to_f32(uint16_t b) {
  uint32_t u = (uint32_t)b << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
// Round to nearest, ties to even; NaN stays NaN.
K31_INLINE uint16_t f32_to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u)
    return (uint16_t)((u >> 16) | 0x40);
  return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
K31_INLINE float load(const void *p, DType t, int64_t i) {
  return t == DType::bf16 ? bf16_to_f32(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}
K31_INLINE void store(void *p, DType t, int64_t i, float v) {
  if (t == DType::bf16)
    ((uint16_t *)p)[i] = f32_to_bf16(v);
  else
    ((float *)p)[i] = v;
}

// ---- 16 lanes; pointers need no alignment
K31_INLINE f32x16 splat(float v) { return (f32x16)v; }
template <class V, class T> K31_INLINE V load_vector(const T *p) {
  V v;
  memcpy(&v, p, sizeof(V));
  return v;
}
K31_INLINE f32x16 load16_bf16(const uint16_t *p) {
  u32x16 u = __builtin_convertvector(load_vector<u16x16>(p), u32x16) << 16;
  return (f32x16)u;
}
K31_INLINE f32x16 load16(const void *p, DType t, int64_t i) {
  return t == DType::bf16 ? load16_bf16((const uint16_t *)p + i) : load_vector<f32x16>((const float *)p + i);
}
K31_INLINE u16x16 to_bf16(f32x16 v) {
  u32x16 u = (u32x16)v;
  u32x16 nan = (u32x16)((u & 0x7fffffffu) > 0x7f800000u); // all ones where NaN
  u32x16 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  u32x16 quiet = (u >> 16) | 0x40u;
  return __builtin_convertvector((quiet & nan) | (rounded & ~nan), u16x16);
}
K31_INLINE void store16(void *p, DType t, int64_t i, f32x16 v) {
  if (t == DType::bf16) {
    u16x16 b = to_bf16(v);
    memcpy((uint16_t *)p + i, &b, sizeof b);
  } else {
    memcpy((float *)p + i, &v, sizeof v);
  }
}
// The first n of 16 lanes (n in 1..16); the other lanes are zero.
K31_INLINE f32x16 load_part(const void *p, DType t, int64_t i, int n) {
  if (n == kLanes)
    return load16(p, t, i);
  f32x16 v = splat(0);
  for (int l = 0; l < n; ++l)
    v[l] = load(p, t, i + l);
  return v;
}
K31_INLINE void store_part(void *p, DType t, int64_t i, f32x16 v, int n) {
  if (n == kLanes)
    return store16(p, t, i, v);
  for (int l = 0; l < n; ++l)
    store(p, t, i + l, v[l]);
}
K31_INLINE float sum(f32x16 v) {
  typedef float f32x8 __attribute__((ext_vector_type(8)));
  typedef float f32x4 __attribute__((ext_vector_type(4)));
  f32x8 a = v.lo + v.hi;
  f32x4 b = a.lo + a.hi;
  return (b.x + b.z) + (b.y + b.w);
}
K31_INLINE f32x16 max16(f32x16 a, f32x16 b) { return __builtin_elementwise_max(a, b); }

// e^x, about 1 ulp: 0 below -87.3, held at e^88.3 above, NaN stays NaN.
K31_INLINE f32x16 exp16(f32x16 x) {
  i32x16 nan = x != x;
  i32x16 flush = x < splat(-87.3f);
  x = __builtin_elementwise_max(__builtin_elementwise_min(x, splat(88.3f)), splat(-87.3f));
  f32x16 n = __builtin_elementwise_floor(x * 1.44269504088896341f + 0.5f);
  f32x16 r = __builtin_elementwise_fma(n, splat(-0.693359375f), x);
  r = __builtin_elementwise_fma(n, splat(2.12194440e-4f), r);
  f32x16 y = splat(1.9875691500e-4f);
  y = __builtin_elementwise_fma(y, r, splat(1.3981999507e-3f));
  y = __builtin_elementwise_fma(y, r, splat(8.3334519073e-3f));
  y = __builtin_elementwise_fma(y, r, splat(4.1665795894e-2f));
  y = __builtin_elementwise_fma(y, r, splat(1.6666665459e-1f));
  y = __builtin_elementwise_fma(y, r, splat(5.0000001201e-1f));
  y = __builtin_elementwise_fma(y, r * r, r) + 1.0f;
  i32x16 e = __builtin_convertvector(n, i32x16);
  f32x16 scaled = (f32x16)((i32x16)y + (e << 23));
  return (f32x16)(((i32x16)scaled & ~flush) | nan);
}
K31_INLINE float exp1(float x) { return exp16(splat(x))[0]; }

// ln x for a normal positive x, about 1 ulp: x = 2^e m with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh((m - 1) / (m + 1)).
K31_INLINE float log1(float x) {
  int32_t u;
  memcpy(&u, &x, 4);
  int32_t e = (u - 0x3f3504f3) >> 23;
  u -= e * (1 << 23);
  float m;
  memcpy(&m, &u, 4);
  float s = (m - 1) / (m + 1), z = s * s;
  float tail = z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
  return e * 0.693359375f + (2 * s + (2 * s * tail - e * 2.12194440e-4f));
}

// ---- 16 vectors at once
// Lane n of the result is the sum of the lanes of v[n]. Shuffles stay inside 128 bits as long as they can.
K31_INLINE f32x16 sums16(const f32x16 *v) {
  f32x16 w[8], x[4], y[2];
  for (int i = 0; i < 8; ++i) {
    f32x16 a = v[2 * i], b = v[2 * i + 1];
    w[i] = __builtin_shufflevector(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
           __builtin_shufflevector(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
  }
  for (int i = 0; i < 4; ++i) {
    f32x16 a = w[2 * i], b = w[2 * i + 1];
    x[i] = __builtin_shufflevector(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
           __builtin_shufflevector(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
  }
  for (int i = 0; i < 2; ++i) {
    f32x16 a = x[2 * i], b = x[2 * i + 1];
    y[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
  return __builtin_shufflevector(y[0], y[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
         __builtin_shufflevector(y[0], y[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}
// v[i][j] <-> v[j][i]: 4 x 4 blocks inside 128 bits, then 4 x 4 of such blocks.
K31_INLINE void transpose16(f32x16 *v) {
  f32x16 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      f32x16 a = t[i + j], b = t[i + 2 + j];
      v[i + 2 * j] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      v[i + 2 * j + 1] = __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  for (int j = 0; j < 4; ++j) { // v[4 i + j] holds columns j, 4 + j, 8 + j, 12 + j of rows 4 i .. 4 i + 3
    f32x16 a = v[j], b = v[4 + j], c = v[8 + j], d = v[12 + j];
    f32x16 ab0 = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    f32x16 ab1 = __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    f32x16 cd0 = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    f32x16 cd1 = __builtin_shufflevector(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    v[j] = __builtin_shufflevector(ab0, cd0, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    v[4 + j] = __builtin_shufflevector(ab0, cd0, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    v[8 + j] = __builtin_shufflevector(ab1, cd1, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    v[12 + j] = __builtin_shufflevector(ab1, cd1, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
}

// ---- the share of task `task` of `tasks` in n units: [begin, end)
struct Range {
  int64_t begin, end;
};
K31_INLINE Range share(int64_t n, uint32_t task, uint32_t tasks) { return {n * task / tasks, n * (task + 1) / tasks}; }

// Position in its sequence of a row of the segment.
K31_INLINE int64_t position_of(const Segment &s, int64_t row) { return (int64_t)s.start + (row - s.row_begin); }

// Row of a paged cache: `pages` is [blocks of the pool, 256, width], `table` the segment's row of the block table.
K31_INLINE int64_t cache_row(const int32_t *table, int64_t position) {
  return (int64_t)table[position / kBlockTokens] * kBlockTokens + position % kBlockTokens;
}

} // namespace k31::kernels
