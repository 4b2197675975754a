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

constexpr Tile choose(const Config &c) {
  if (!tensor_cores_fit(c))
    return {};
  return c.rows <= 16 ? thin_tile(c.rows, c.n, c.pair) : wide_tile(c.rows, c.n);
}
constexpr Grid grid(const Config &c, const Tile &t) { return {product_tiles(t, c.rows, c.n)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::linear
