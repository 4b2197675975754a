// Launch choices of nn.head_linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/nn/head_linear.h"

namespace k31::kernels::head_linear {

constexpr double kSplitValues = 40e9; // of fp32 that one multiprocessor makes two of bf16 of, a second

using Tile = ProductTile;

// x in bf16, or in fp32 as two of bf16 (common/wide.cuh).
constexpr bool tensor_cores_fit(const Config &c) {
  return (c.x_type == DType::bf16 || c.x_type == DType::f32) && c.w_type == DType::bf16 && c.in % 8 == 0 && c.out % 8 == 0 &&
         c.ld_x % 8 == 0 && c.head_x % 8 == 0 && c.head_w % 8 == 0 && c.w_begin % 8 == 0;
}

// fp32 x, few rows: all of K on its way at once, and W before the launches before have ended; four warps share the columns of a
// stage, as each product waits for the one before. Beyond two blocks a multiprocessor they hide each other's waits, and fewer
// stages let more of them in: 96 heads, one row, 5.6 us for 6.4; with 12 heads 3.6 for 3.2.
constexpr Tile few_rows(const Config &c, int32_t bm, int32_t bn) {
  Tile t;
  t.form = kWide, t.bm = bm, t.bn = bn, t.x_bytes = 4, t.ahead = 1;
  t.warps_m = bm / 16, t.warps_n = bn == 64 ? 2 : 1, t.warps_k = 4, t.block = 128 * t.warps_m * t.warps_n;
  const int64_t tiles = c.heads * ceil_div(c.out, bn) * ceil_div(most(c.rows, 1), bm), blocks = ceil_div(c.in, 64);
  t.stages = most(least(blocks + 1, tiles > 2 * kMultiprocessors ? 5 : 9), 2);
  return t;
}
// fp32 x, many rows: a warp takes 32 rows and 64 columns, so that what it splits serves many products. Two blocks a
// multiprocessor were faster than one with 128 rows: 8192 rows of 12 heads 94 us for 108.
constexpr Tile many_rows(int32_t bn) {
  Tile t;
  t.form = kWide, t.bm = 64, t.bn = bn, t.x_bytes = 4, t.stages = 3;
  t.warps_m = 2, t.warps_n = bn / 64, t.block = 64 * t.warps_n;
  return t;
}

// A head's matrix is small (128 x 512), so few stages of a tile of 64 columns keep many blocks at work on a multiprocessor.
constexpr Candidates<Tile> candidates(const Config &c) {
  Candidates<Tile> all;
  if (!tensor_cores_fit(c)) {
    all.add({});
    return all;
  }
  if (c.x_type == DType::f32) {
    if (c.rows <= 128)
      for (int32_t bm : {16, 32})
        all.add(few_rows(c, bm, c.transposed ? 64 : 32)); // columns of W come in blocks of 64
    all.add(many_rows(ceil_div(c.out, 64) % 2 == 0 ? 128 : 64));
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
  const int32_t x_bytes = bytes_of_type(c.x_type);
  if (t.form == kPlain)
    return plain_cost(c.rows, (int64_t)c.heads * c.out, c.in, x_bytes, bytes_of_type(c.w_type));
  const double rows = most(c.rows, 1), w = (double)c.heads * c.in * c.out;
  const double tiles = (double)c.heads * (double)ceil_div(c.out, t.bn) * (double)ceil_div(most(c.rows, 1), t.bm);
  const double share = tiles > kMultiprocessors ? tiles / kMultiprocessors : 1; // blocks share a multiprocessor
  LaunchCost cost;
  cost.memory = (w * 2 + rows * c.heads * (c.in * x_bytes + c.out * 2)) / kMemoryBytes;
  cost.caches = share * (least(rows, t.bm) * x_bytes + t.bn * 2.0) * c.in / kCacheBytes;
  const double warps = share * (t.block / 32); // fewer than 8 leave tensor cores idle
  cost.math = share * x_bytes * t.bm * t.bn * (double)c.in / (warps < 8 ? kWarpFlops * warps / 8 : kWarpFlops);
  if (x_bytes == 4) // each warp splits the values that it multiplies
    cost.math += share * t.bm * t.warps_n * (double)c.in / kSplitValues;
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
