// Launch choices of moe.grouped_linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/moe/grouped_linear.h"

namespace k31::kernels::grouped_linear {

using Tile = ProductTile;

constexpr bool tensor_cores_fit(const Config &c) {
  return c.x_type == DType::bf16 && (c.mxfp4 || c.w_type == DType::bf16) && c.k % 8 == 0 && c.ld_x % 8 == 0 && c.n % 8 == 0;
}

// Rows of an expert, half as many again as the mean when all rows of the capacity are live. More rows than bm are taken in turns,
// so a wrong guess costs time only.
constexpr int64_t rows_of_expert(const Config &c) {
  return ceil_div(3 * (int64_t)c.rows, 2 * (int64_t)c.ranks * most(c.experts, 1));
}

// Blocks of 26 KB, four a multiprocessor: three turns a warp hold the bytes that memory's latency asks for; more were slower.
constexpr Tile thin_tile(int32_t bm, const Config &c) {
  Tile t;
  t.form = kThin, t.block = 128, t.bm = bm, t.bn = c.mxfp4 || c.pair ? 32 : 16, t.stages = c.mxfp4 ? 3 : 1;
  return t;
}
constexpr Tile wide_tile(int32_t bm) {
  Tile t;
  t.form = kWide, t.block = 256, t.bm = bm, t.bn = 128, t.stages = 4, t.warps_m = 2, t.warps_n = 4;
  return t;
}
constexpr Tile decoded_tile(int32_t bm) {
  Tile t;
  t.form = kDecoded, t.block = 512, t.bm = bm, t.bn = 256, t.stages = 5;
  return t;
}

constexpr Candidates<Tile> candidates(const Config &c) {
  Candidates<Tile> all;
  if (!tensor_cores_fit(c)) {
    all.add({});
    return all;
  }
  for (int32_t bm : {8, 16})
    all.add(thin_tile(bm, c));
  for (int32_t bm : {32, 64, 128})
    if (!c.mxfp4)
      all.add(wide_tile(bm));
    else if (bm <= 64)
      all.add(decoded_tile(bm));
  return all;
}

// Each expert that can have rows reads its W once and decodes it again for each bm of its rows.
constexpr LaunchCost cost(const Config &c, const Tile &t) {
  const int64_t rows = rows_of_expert(c), experts = most(least(c.experts, c.rows), 1), passes = ceil_div(rows, t.bm);
  const double w_bytes = c.mxfp4 ? 17.0 / 32 : bytes_of_type(c.w_type), weights = (double)experts * c.n * c.k;
  if (t.form == kPlain)
    return plain_cost(rows, experts * c.n, c.k, bytes_of_type(c.x_type), w_bytes);
  const double tiles = (double)experts * (double)passes * (double)ceil_div(c.n, t.bn), share = tiles / kMultiprocessors;
  LaunchCost cost;
  cost.ends = t.form == kThin ? 0.2e-6 : 2e-6; // sums that meet; stages that fill
  cost.memory = (weights * w_bytes + (double)experts * rows * (c.k + c.n) * 2) / kMemoryBytes;
  cost.caches = share * (least(rows, t.bm) * 2.0 + t.bn * w_bytes) * c.k / kCacheBytes;
  cost.math = t.form == kDecoded ? share * (double)c.k * (kDecodedColumn + t.bm * kDecodedColumnOfRow)
                                 : share * 2 * t.bm * t.bn * (double)c.k / kWarpFlops;
  if (c.mxfp4 && t.form == kThin)
    cost.math += (double)passes * weights / kMultiprocessors / kDecodedWeights;
  return cost;
}
constexpr Tile choose(const Config &c) { return cheapest(c); }
// x: tiles of an expert's W; y: experts with rows, at most one a row; z: an expert's tiles of rows, in turns.
constexpr Grid grid(const Config &c, const Tile &t) {
  int64_t tiles = ceil_div(c.rows, most(c.experts, 1) * (int64_t)t.bm);
  return {(int32_t)ceil_div(c.n, t.bn), most(least(c.experts, c.rows), 1), t.form == kThin ? 1 : least(most(tiles, 1), 8)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::grouped_linear
