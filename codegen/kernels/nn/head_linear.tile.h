// Launch choices of nn.head_linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/nn/head_linear.h"

namespace k31::kernels::head_linear {

using Tile = ProductTile;

constexpr bool tensor_cores_fit(const Config &c) {
  return c.x_type == DType::bf16 && c.w_type == DType::bf16 && c.in % 8 == 0 && c.out % 8 == 0 && c.ld_x % 8 == 0 &&
         c.head_x % 8 == 0 && c.head_w % 8 == 0 && c.w_begin % 8 == 0;
}

// A head's matrix is small (128 x 512), so few stages of a tile of 64 columns keep many blocks at work on a multiprocessor.
constexpr Candidates<Tile> candidates(const Config &c) {
  Candidates<Tile> all;
  if (!tensor_cores_fit(c)) {
    all.add({});
    return all;
  }
  for (int32_t bm : {16, 32, 64, 128}) {
    Tile t;
    t.form = kWide, t.bn = 64, t.stages = 3, t.bm = bm;
    t.warps_m = bm >= 64 ? bm / 32 : bm / 16, t.warps_n = 2, t.block = 32 * t.warps_m * t.warps_n;
    all.add(t);
  }
  return all;
}
constexpr LaunchCost cost(const Config &c, const Tile &t) {
  if (t.form == kPlain)
    return plain_cost(c.rows, (int64_t)c.heads * c.out, c.in, bytes_of_type(c.x_type), bytes_of_type(c.w_type));
  const double rows = most(c.rows, 1), w = (double)c.heads * c.in * c.out;
  const double tiles = (double)c.heads * (double)ceil_div(c.out, t.bn) * (double)ceil_div(most(c.rows, 1), t.bm);
  const double share = tiles > kMultiprocessors ? tiles / kMultiprocessors : 1; // blocks share a multiprocessor
  LaunchCost cost;
  cost.memory = (w + rows * c.heads * (c.in + c.out)) * 2 / kMemoryBytes;
  cost.caches = share * (least(rows, t.bm) + t.bn) * c.in * 2.0 / kCacheBytes;
  const double warps = share * (t.block / 32); // fewer than 8 leave tensor cores idle
  cost.math = share * 2 * t.bm * t.bn * (double)c.in / (warps < 8 ? kWarpFlops * warps / 8 : kWarpFlops);
  cost.ends = 1e-6; // stages that fill
  return cost;
}
constexpr Tile choose(const Config &c) { return cheapest(c); }
// x: tiles of a head's columns; y: heads; z: tiles of rows, in turns.
constexpr Grid grid(const Config &c, const Tile &t) {
  return {(int32_t)ceil_div(c.out, t.bn), c.heads, least(ceil_div(most(c.rows, 1), t.bm), kMaxGridY)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::head_linear
