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

K31_INLINE int64_t bytes_of(DType t) { return t == DType::bf16 ? 2 : t == DType::u8 ? 1 : 4; }

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

// ---- the share of task `task` of `tasks` in n units: [begin, end)
struct Range {
  int64_t begin, end;
};
K31_INLINE Range share(int64_t n, uint32_t task, uint32_t tasks) { return {n * task / tasks, n * (task + 1) / tasks}; }

// Row of a paged cache: `pages` is [blocks of the pool, 256, width], `table` the segment's row of the block table.
K31_INLINE int64_t cache_row(const int32_t *table, int64_t position) {
  return (int64_t)table[position / kBlockTokens] * kBlockTokens + position % kBlockTokens;
}

} // namespace k31::kernels
