// Launch choices of nn.linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/common/tensor_map.h"
#include "codegen/kernels/nn/linear.h"

namespace k31::kernels::linear {

using Tile = ProductTile;

// bf16 with bf16 and rows of whole 16-byte words: what the tensor-core forms need besides aligned pointers.
constexpr bool tensor_cores_fit(const Config &c) {
  return c.x_type == DType::bf16 && c.w_type == DType::bf16 && c.k % 8 == 0 && c.ld_x % 8 == 0 && c.n % 8 == 0;
}

// Measured on one H200, N = 12288, K = 7168: 8 rows thin 44.9 us; 16 and 64 rows mapped 45.5 and 45.6 us; 8192 rows mapped 128 x
// 256 2246 us. Clusters of two blocks that share x or W by multicast were slower everywhere: 91 us at 64 rows, 2549 us at 8192.
constexpr Tile choose(const Config &c) {
  if (!tensor_cores_fit(c))
    return {};
  if (c.rows <= 8 || (c.rows <= 16 && c.n < 4096))
    return thin_tile(c.rows, c.n, c.pair);
  return mapped_tile(c.rows, c.n, c.pair);
}
constexpr Grid grid(const Config &c, const Tile &t) { return {product_blocks(t, c.rows, c.n)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }
constexpr TensorMaps tensor_maps(const Config &c, const Tile &t) {
  if (t.form != kMapped)
    return TensorMaps();
  return {2,
          {{0, DType::bf16, c.k, most(c.rows, 1), (int64_t)c.ld_x * 2, 64, t.box_x},
           {1, DType::bf16, c.k, c.n, (int64_t)c.k * 2, 64, t.bn}}};
}

} // namespace k31::kernels::linear
