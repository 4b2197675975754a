// The epilogue of products with pairs that tests use: silu(gate) * up.
#pragma once
#include <cmath>
#include <cstdint>

namespace k31::test {

struct Gated { // the region: gate, up
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = in[0] * in[1] / (1 + expf(-in[0])); }
};

// What column `col` of row r must be; dot(r, n) is the product with row n of W. With pairs, W has 16 rows of gates, then their 16
// ups.
template <bool pair, class Dot> double gated_dot(int64_t r, int64_t col, const Dot &dot) {
  if (!pair)
    return dot(r, col);
  const double gate = dot(r, col / 16 * 32 + col % 16), up = dot(r, col / 16 * 32 + col % 16 + 16);
  return gate * up / (1 + std::exp(-gate));
}

} // namespace k31::test
