// Codes of caches on the host, 16 at a time.
#pragma once
#include "codegen/kernels/common/fp8.h"
#include "codegen/kernels/common/host.h"

namespace k31::kernels {

K31_INLINE float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

K31_INLINE f32x16 decode_f8(u8x16 codes) {
  const u32x16 u = __builtin_convertvector(codes, u32x16), magnitude = u & 0x7fu;
  const u32x16 normal = (magnitude << 20) + (120u << 23);
  const u32x16 small = (u32x16)(__builtin_convertvector((i32x16)magnitude, f32x16) * 0x1p-9f);
  const u32x16 is_small = (u32x16)(magnitude < 8u);
  return (f32x16)((small & is_small) | (normal & ~is_small) | (u & 0x80u) << 24);
}
// Rounded to nearest, ties to even; |v| is at most 448.
K31_INLINE u8x16 encode_f8(f32x16 v) {
  const u32x16 u = (u32x16)v, magnitude = u & 0x7fffffffu;
  const u32x16 normal = ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20) - (120u << 3);
  const u32x16 small = (u32x16)((f32x16)magnitude * 512.0f + 8388608.0f) & 15u; // multiples of 2^-9 at the end of the mantissa
  const u32x16 is_small = (u32x16)(magnitude < (121u << 23));
  return __builtin_convertvector((small & is_small) | (normal & ~is_small) | (u >> 24 & 0x80u), u8x16);
}

typedef int8_t i8x16 __attribute__((ext_vector_type(16)));
K31_INLINE f32x16 decode_i8(u8x16 codes) { return __builtin_convertvector((i8x16)codes, f32x16); }
// Rounded to nearest, ties to even; |v| is below 128.
K31_INLINE u8x16 encode_i8(f32x16 v) {
  return __builtin_convertvector((u32x16)(v + 12582912.0f), u8x16); // 1.5 x 2^23: integers at the end of the mantissa
}

// n <= 16 codes times `scale`; lanes past n are zero.
K31_INLINE f32x16 load_codes(const uint8_t *codes, DType type, int n, float scale) {
  u8x16 v = (u8x16)(uint8_t)0;
  if (n == 16)
    v = load_vector<u8x16>(codes);
  else
    memcpy(&v, codes, n);
  return (type == DType::f8 ? decode_f8(v) : decode_i8(v)) * scale;
}

} // namespace k31::kernels
