// Launch choices of nn.linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/nn/linear.h"

namespace k31::kernels::linear {

using Tile = ProductTile;

// bf16 with bf16 and rows of whole 16-byte words: what the tensor-core forms need besides aligned pointers.
constexpr bool tensor_cores_fit(const Config &c) {
  return c.x_type == DType::bf16 && c.w_type == DType::bf16 && c.k % 8 == 0 && c.ld_x % 8 == 0 && c.n % 8 == 0;
}

// Measured on one H200, N = 12288, K = 7168: 16 rows thin 52 us; 64 rows 82 us by warps; 256 rows 213 us by warps, 136 us by
// warp groups of 128 rows of W; 8192 rows 4973 us by warps, 3479 and 3287 us by warp groups of 128 and 256.
constexpr Tile choose(const Config &c) {
  if (!tensor_cores_fit(c))
    return {};
  if (c.rows <= 16)
    return thin_tile(c.rows, c.n, c.pair);
  if (c.rows <= 64)
    return wide_tile(c.rows, c.n);
  return warp_group_tile(c.rows >= 1024 && c.n >= 2048 ? 256 : 128);
}
constexpr Grid grid(const Config &c, const Tile &t) { return {product_tiles(t, c.rows, c.n)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::linear
