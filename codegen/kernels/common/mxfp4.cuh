// MXFP4 on CUDA: 32 columns of one row are 16 bytes of E2M1 codes (low nibble first) and one E8M0 scale.
//
// A nibble s e e m, its sign moved to bit 15 and its other bits to 8, 7, 6, is a bf16 number 2^-126 times the code's value: the
// subnormal 0.5 included. A multiplication by a power of two, which is exact, then gives code times scale. Pairs of one register
// are 4 columns apart (nibbles j and j + 4 of a word), so x meets them in the order 0 4 1 5 2 6 3 7 of each 8 columns.
#pragma once
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels {

constexpr int32_t kScaleColumns = 32;             // columns of one scale
constexpr int32_t kCodeBytes = kScaleColumns / 2; // bytes of their codes

// A scale as fp32: 2^(s - 127). Both ends of the range need the top mantissa bit: 0 is the subnormal 2^-127, 255 is NaN.
K31_DEVICE float e8m0(uint32_t s) { return __uint_as_float(s << 23 | (s == 0 || s == 255 ? 0x400000u : 0u)); }

// The value of one nibble.
K31_DEVICE float e2m1(uint32_t code) {
  float magnitude = __uint_as_float((code & 7) << 22) * __uint_as_float(253u << 23); // 2^126
  return code & 8 ? -magnitude : magnitude;
}

// Weights are held as code * scale * 2^-32 in bf16, so that scales up to 2^33 stay finite; kUnscale puts the sums right. Above,
// and for NaN scales, the factor is NaN; weights below 2^-94 lose bits.
constexpr float kUnscale = 4294967296.0f;

// The factor 2^126 * 2^(s - 127) * 2^-32 twice in one register.
K31_DEVICE uint32_t scale_pair(uint32_t s) {
  uint32_t exponent = s + 126 - 32, bits = exponent < 255 ? exponent << 7 : 0x7fc0u;
  return bits | bits << 16;
}

// Eight codes of one word, columns c .. c + 7: pairs (c, c + 4), (c + 1, c + 5), (c + 2, c + 6), (c + 3, c + 7), scaled.
K31_DEVICE void decode_word(uint32_t codes, uint32_t factor, uint32_t (&pair)[4]) {
  const uint32_t later = codes >> 8;
  pair[0] = (codes & 0x000f000fu) * 0x1040; // a nibble to bits 15 to 12 and 9 to 6 at once
  pair[1] = (codes & 0x00f000f0u) * 0x0104;
  pair[2] = (later & 0x000f000fu) * 0x1040;
  pair[3] = (later & 0x00f000f0u) * 0x0104;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    pair[j] = multiply_bf16x2(pair[j] & 0x81c081c0u, factor);
}
// Eight columns of x as pairs in the same order.
K31_DEVICE void order_as_decoded(const uint4 &v, uint32_t (&pair)[4]) {
  pair[0] = __byte_perm(v.x, v.z, 0x5410), pair[1] = __byte_perm(v.x, v.z, 0x7632);
  pair[2] = __byte_perm(v.y, v.w, 0x5410), pair[3] = __byte_perm(v.y, v.w, 0x7632);
}

} // namespace k31::kernels
