// Codes of caches on CUDA (fp8.h says what they are).
//
// e4m3: the low seven bits of a code, moved to bits 10..4 of a bf16 number, are 2^-120 times the code's value, subnormal codes
// included. A multiplication by a power of two, which is exact, gives code times scale. Integers: the low seven bits m behind
// 0x43 are the bf16 number 128 + m, the sign bit alone behind it is 128 or 256: the difference is the integer.
#pragma once
#include "codegen/kernels/common/cuda.cuh"
#include "codegen/kernels/common/fp8.h"

namespace k31::kernels {

K31_DEVICE float decode_code(uint32_t code) {
  const float magnitude = __uint_as_float((code & 0x7f) << 20) * __uint_as_float(247u << 23); // 2^120
  return code & 0x80 ? -magnitude : magnitude;
}

// 2^120 scale twice in one register. A scale above 2^7, of values above 57344, and a NaN one, make it NaN.
K31_DEVICE uint32_t code_factor(uint32_t scale) {
  const uint32_t exponent = (scale >> 23) + 120, bits = exponent < 255 ? exponent << 7 : 0x7fc0u;
  return bits | bits << 16;
}

// Two bytes of a word, each behind eight copies of its sign bit. `order`: four hexadecimal digits, the number of a byte or with 8
// added its sign, lowest last.
template <uint32_t order> K31_DEVICE uint32_t bytes_and_signs(uint32_t word) {
  uint32_t v;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(v) : "r"(word), "n"(order));
  return v;
}
// Four codes of a word as two pairs of bf16, in order, times a factor. Four bits up, a code that stands behind its sign has the
// sign at bit 15 and the rest at bits 10..4.
K31_DEVICE uint2 decode_codes(uint32_t codes, uint32_t factor) {
  const uint32_t low = bytes_and_signs<0x9180>(codes), high = bytes_and_signs<0xb3a2>(codes);
  return make_uint2(multiply_bf16x2(low << 4 & 0x87f087f0u, factor), multiply_bf16x2(high << 4 & 0x87f087f0u, factor));
}
// Four integers of a word as two pairs of bf16, in order.
K31_DEVICE uint2 decode_integers(uint32_t codes) {
  const uint32_t low = __byte_perm(codes, 0x43, 0x4140), high = __byte_perm(codes, 0x43, 0x4342);
  return make_uint2(subtract_bf16x2(low & 0xff7fff7fu, low & 0xff80ff80u),
                    subtract_bf16x2(high & 0xff7fff7fu, high & 0xff80ff80u));
}
K31_DEVICE uint4 decode_integers(uint2 codes) {
  const uint2 a = decode_integers(codes.x), b = decode_integers(codes.y);
  return make_uint4(a.x, a.y, b.x, b.y);
}
K31_DEVICE uint4 decode_codes(uint2 codes, uint32_t factor) {
  const uint2 a = decode_codes(codes.x, factor), b = decode_codes(codes.y, factor);
  return make_uint4(a.x, a.y, b.x, b.y);
}

} // namespace k31::kernels
