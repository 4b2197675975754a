// MXFP4 in registers: 32 columns of one row are 16 bytes of E2M1 codes and one E8M0 scale.
//
// Byte i holds columns 2 i (low nibble) and 2 i + 1 (high nibble), so decoding gives an even and an odd vector; they meet the
// even and odd values of x without any shuffle when x is bf16.
#pragma once
#include "codegen/kernels/common/host.h"

namespace k31::kernels {

constexpr int kScaleColumns = 32;             // columns of one scale
constexpr int kCodeBytes = kScaleColumns / 2; // bytes of their codes

struct EvenOdd {
  f32x16 even, odd;
};

// A nibble s e e m is (-1)^s times 0, 0.5, 1, 1.5, 2, 3, 4, 6.
K31_INLINE EvenOdd decode_e2m1(const uint8_t *codes) {
  u8x16 bytes = load_vector<u8x16>(codes);
  if (k31_vector_bytes >= 64) { // one 16-entry table look-up in a register a vector
    const f32x16 table = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    u32x16 u = __builtin_convertvector(bytes, u32x16);
    return {__builtin_shufflevector(table, u & 15u), __builtin_shufflevector(table, u >> 4)};
  }
  // AVX2 looks up bytes: every value is an fp16 number whose low byte is zero.
  typedef _Float16 f16x16 __attribute__((ext_vector_type(16)));
  const u8x16 table = {0, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};
  u8x16 even = __builtin_shufflevector(table, bytes & (uint8_t)15), odd = __builtin_shufflevector(table, bytes >> (uint8_t)4);
  u16x16 even16 = __builtin_convertvector(even, u16x16) << (uint16_t)8, odd16 = __builtin_convertvector(odd, u16x16)
                                                                                << (uint16_t)8;
  return {__builtin_convertvector((f16x16)even16, f32x16), __builtin_convertvector((f16x16)odd16, f32x16)};
}

// bf16 numbers of 32 codes, one in the low bits of each 16. AVX512-BF16 only, as whatever multiplies them. The look-up takes five
// bits of each; the table holds everything twice, so that the fifth does not matter.
K31_INLINE u32x16 look_up_e2m1(u32x16 codes) {
#if defined(__AVX512BF16__)
  typedef unsigned short Words __attribute__((vector_size(64)));
  typedef short SignedWords __attribute__((vector_size(64)));
  const Words table = {0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80,
                       0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0, 0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040,
                       0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};
  return (u32x16)__builtin_ia32_permvarhi512((SignedWords)table, (SignedWords)codes);
#else
  return codes; // a build for tests of the other paths
#endif
}

// 32 columns as bf16 in their order: two a lane.
K31_INLINE u32x16 pairs_e2m1(const uint8_t *codes) {
  u32x16 u = __builtin_convertvector(load_vector<u8x16>(codes), u32x16);
  return look_up_e2m1(u | u << 12);
}

// 128 columns at a time need no widening: 64 bytes are 32 words of four codes, and a shift brings each of them down. Vector c
// then holds columns 8 l + c and 8 l + 4 + c in lane l, and so must x.
constexpr int kWideColumns = 128;
K31_INLINE void order_for_words(const uint16_t *x, int64_t k, uint32_t *to) {
  for (int64_t block = 0; block < k; block += kWideColumns)
    for (int c = 0; c < 4; ++c)
      for (int l = 0; l < kLanes; ++l)
        *to++ = (uint32_t)x[block + 8 * l + c] | (uint32_t)x[block + 8 * l + 4 + c] << 16;
}

// 16 E8M0 scales as fp32: 2^(s - 127). Both ends of the range need the top mantissa bit: s = 0 is the subnormal 2^-127, 255 is
// NaN.
K31_INLINE f32x16 e8m0(u8x16 bytes) {
  u32x16 s = __builtin_convertvector(bytes, u32x16);
  u32x16 ends = (u32x16)(s == 0u) | (u32x16)(s == 255u);
  return (f32x16)((s << 23) | (ends & 0x400000u));
}

// Even and odd values of 32 neighbouring values of x.
K31_INLINE EvenOdd split_even_odd(const void *x, DType type, int64_t i) {
  if (type == DType::bf16) {
    u32x16 pairs = load_vector<u32x16>((const uint16_t *)x + i);
    return {(f32x16)(pairs << 16), (f32x16)(pairs & 0xffff0000u)};
  }
  f32x16 a = load16(x, type, i), b = load16(x, type, i + kLanes);
  return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
}

} // namespace k31::kernels
