// Launch choices of nn.linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/common/tensor_map.h"
#include "codegen/kernels/nn/linear.h"

namespace k31::kernels::linear {

using Tile = ProductTile;

// bf16 with bf16 and rows of whole 16-byte words: what the tensor-core forms need besides aligned pointers. Any number of rows of
// W: a rank can hold 12 heads, and 3.
constexpr bool tensor_cores_fit(const Config &c) {
  return c.x_type == DType::bf16 && c.w_type == DType::bf16 && c.k % 8 == 0 && c.ld_x % 8 == 0;
}

// Measured on one H200, N = 12288, K = 7168: 8 rows thin 44.9 us; 16 rows thin 52, mapped 45.5 us; 64 rows mapped 45.6 us; 8192
// rows mapped 128 x 256 2246 us. Clusters of two blocks that share x or W by multicast were slower everywhere: 91 us at 64 rows,
// 2549 us at 8192. Clusters that share K help narrow matrices: 64 rows, N = 1536, 18.9 us by one block a tile, 10.1 us by four.
constexpr Candidates<Tile> candidates(const Config &c) {
  Candidates<Tile> all;
  if (!tensor_cores_fit(c)) {
    all.add({});
    return all;
  }
  if (c.rows <= 8 || (c.rows <= 16 && c.n < 4096)) // beyond, measured slower than the mapped form
    for (int32_t warps : {4, 8, 16})
      all.add(thin_tile(c.rows, warps, c.pair));
  for (int32_t bn : {256, 192, 128, 96, 64, 48, 32, 16})
    if (!c.pair || bn % 32 == 0)
      for (int32_t split = 1; split <= 8; ++split)
        if (split == 1 || can_split(c.rows, c.n, c.k, bn, split))
          all.add(mapped_tile(c.rows, bn, split));
  return all;
}
constexpr LaunchCost cost(const Config &c, const Tile &t) {
  return t.form == kPlain ? plain_cost(c.rows, c.n, c.k, bytes_of_type(c.x_type), bytes_of_type(c.w_type))
                          : product_cost(t, c.rows, c.n, c.k);
}
constexpr Tile choose(const Config &c) { return cheapest(c); }
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
