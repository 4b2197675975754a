// Caches of 8-bit codes with scales: what host and CUDA kernels agree on.
//
// Latent rows, f8: e4m3 codes with scales that are powers of two. A code s eeee mmm is 2^(e - 7) (1 + m / 8), with e = 0: m 2^-9;
// the largest is 448, and 0x7f is a NaN that no kernel writes. A scale is the smallest power of two for which |x| / scale stays
// within 448, so multiplying by it is exact, in bf16 too. Values below 1e-4 do not lower it further. Keys, i8: integers within
// 127 and a scale a key, largest / 127. Their errors are a quarter of e4m3's, so that the selected set is kept; both forms decode
// to bf16 exactly, since the scale of a key multiplies its score. A value that is not finite makes the scale, and so all values
// under it, NaN.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels {

constexpr int32_t kRowScaleCodes = 128; // codes of a latent row that share a scale

// Bytes of a latent row: `codes` codes, their scales, the rest of `width` values as bf16. Where the scales and the rest begin.
constexpr int32_t row_scales_at(int32_t codes) { return codes; }
constexpr int32_t row_rest_at(int32_t codes) { return codes + (codes + kRowScaleCodes - 1) / kRowScaleCodes * 4; }
constexpr int32_t coded_row_bytes(int32_t codes, int32_t width) { return row_rest_at(codes) + (width - codes) * 2; }

// A page of keys: 256 rows of `dim` codes, then a scale a row. First byte of a row of the pool, and of its scale.
constexpr int64_t coded_page_bytes(int32_t dim) { return (int64_t)kBlockTokens * (dim + 4); }
constexpr int64_t key_at(int64_t row, int32_t dim) {
  return row / kBlockTokens * coded_page_bytes(dim) + row % kBlockTokens * dim;
}
constexpr int64_t key_scale_at(int64_t row, int32_t dim) {
  return row / kBlockTokens * coded_page_bytes(dim) + (int64_t)kBlockTokens * dim + row % kBlockTokens * 4;
}

// Bits of the scale for values whose largest magnitude has these bits: the exponent of m 2^e / (1.75 2^8), rounded up.
constexpr uint32_t kNotFinite = 0x7f800000u, kNaN = 0x7fc00000u;
constexpr uint32_t scale_bits(uint32_t largest) {
  constexpr uint32_t least = 0x38d1b717u; // 1e-4
  if (largest >= kNotFinite)
    return kNaN;
  return ((((largest < least ? least : largest) + 0x1fffffu) >> 23) - 8) << 23;
}
// A key is multiplied by 127 / largest and rounded; its scale is largest / 127, both in fp32.
constexpr float kLargestInteger = 127, kLeastMagnitude = 1e-4f;

// Bits of 1 / scale; 0 for NaN, whose codes are 0.
constexpr uint32_t inverse_scale_bits(uint32_t scale) { return scale >= kNotFinite ? 0 : (254u << 23) - scale; }

} // namespace k31::kernels
