// Caches of 8-bit codes by their definition, in fp64: what is stored for given values, and what that means. T is a tensor of
// either kind of kernel tests.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace k31::test {

// s eeee mmm: 2^(e - 7) (1 + m / 8); e = 0: m 2^-9.
inline double code_value(uint8_t code) {
  const int e = code >> 3 & 15, m = code & 7;
  const double magnitude = e ? std::ldexp(8 + m, e - 10) : std::ldexp(m, -9);
  return code & 0x80 ? -magnitude : magnitude;
}
// The nearest code, of two the even one: the multiple of the step between codes of this size.
inline uint8_t nearest_code(double v) {
  int e = 0;
  std::frexp(v, &e); // |v| in [2^(e - 1), 2^e)
  e = v == 0 ? -6 : std::max(e - 1, -6);
  const int steps = (int)std::nearbyint(std::ldexp(std::abs(v), 3 - e)); // of 2^(e - 3): 8 to 16, or less below 2^-6
  return (uint8_t)(steps + (e + 6) * 8) | (std::signbit(v) ? 0x80 : 0);
}
// The smallest power of two that brings n values within 448; values below 1e-4 do not lower it. NaN when one is not finite.
template <class F> float scale_of(int n, F value) {
  double largest = 1e-4f;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(value(i)))
      return NAN;
    largest = std::max(largest, std::abs((double)value(i)));
  }
  double scale = std::ldexp(1, -140);
  while (largest / scale > 448)
    scale *= 2;
  return (float)scale;
}

// The integers of a key: |v| / scale within 127. fp32 as stated by the kernels' contract.
template <class F> float integer_scale_of(int n, F value, float &inverse) {
  float largest = 1e-4f;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(value(i)))
      return inverse = 0, NAN;
    largest = std::max(largest, std::abs((float)value(i)));
  }
  inverse = 127 / largest;
  return largest / 127;
}
inline int nearest_integer(float v, float inverse) { return (int)std::nearbyint(v * inverse); }

// `n` values of a row of `values` from `column` on become codes from byte `at` of `bytes` on, a row of bytes, and a scale at byte
// `scale_at`; the values become what is stored.
template <class T>
void store_codes(T &values, int64_t row, int column, int n, T &bytes, int64_t to, int64_t at, int64_t scale_at,
                 bool integers = false) {
  const auto value = [&](int i) { return values.at(row, column + i); };
  float inverse = 0;
  const float scale = integers ? integer_scale_of(n, value, inverse) : scale_of(n, value);
  for (int i = 0; i < n && integers; ++i) {
    const int code = std::isnan(scale) ? 0 : nearest_integer((float)value(i), inverse);
    bytes.set(to, at + i, (uint8_t)code);
    values.set(row, column + i, code * scale);
  }
  for (int i = 0; i < n && !integers; ++i) {
    const uint8_t code = std::isnan(scale) ? 0 : nearest_code(values.at(row, column + i) / scale);
    bytes.set(to, at + i, code);
    values.set(row, column + i, (float)(code_value(code) * scale));
  }
  uint32_t bits;
  std::memcpy(&bits, &scale, 4);
  if (std::isnan(scale))
    bits = 0x7fc00000;
  for (int b = 0; b < 4; ++b)
    bytes.set(to, scale_at + b, bits >> 8 * b & 255);
}

inline int latent_bytes(int codes, int width) { return codes + (codes + 127) / 128 * 4 + (width - codes) * 2; }

// Rows of `values` [rows, width] fp32 into `bytes` u8 [rows, latent_bytes]; a row that begins with poison stays poison.
template <class T> void store_latent_rows(T &values, T &bytes, int codes) {
  const int tail = latent_bytes(codes, codes);
  for (int64_t r = 0; r < values.rows(); ++r) {
    if (std::isnan(values.at(r, 0)))
      continue;
    for (int c = 0; c < codes; c += 128)
      store_codes(values, r, c, std::min(128, codes - c), bytes, r, c, codes + c / 128 * 4);
    for (int c = codes; c < values.cols(); ++c) {
      float v = (float)values.at(r, c);
      uint32_t bits;
      std::memcpy(&bits, &v, 4);
      bits = std::isnan(v) ? bits | 0x400000 : (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
      std::memcpy(&v, &bits, 4);
      bytes.set(r, tail + (c - codes) * 2, bits >> 16 & 255), bytes.set(r, tail + (c - codes) * 2 + 1, bits >> 24);
      values.set(r, c, v);
    }
  }
}
// Keys `values` [blocks * 256, dim] fp32 into `bytes` u8 [blocks, 256 (dim + 4)].
template <class T> void store_keys(T &values, T &bytes) {
  const int dim = (int)values.cols();
  for (int64_t r = 0; r < values.rows(); ++r)
    if (!std::isnan(values.at(r, 0)))
      store_codes(values, r, 0, dim, bytes, r / 256, r % 256 * dim, 256 * dim + r % 256 * 4, true);
}

} // namespace k31::test
