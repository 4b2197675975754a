// Launch choices of moe.grouped_linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/moe/grouped_linear.h"

namespace k31::kernels::grouped_linear {

using Tile = ProductTile;

constexpr bool tensor_cores_fit(const Config &c) {
  return c.x_type == DType::bf16 && (c.mxfp4 || c.w_type == DType::bf16) && c.k % 8 == 0 && c.ld_x % 8 == 0 && c.n % 8 == 0;
}

// Rows of an expert when all rows of the capacity are live and routing is even.
constexpr double rows_of_expert(const Config &c) { return (double)c.rows / ((double)c.ranks * most(c.experts, 1)); }
// The mean of how many pieces of `size` rows hold an expert's rows, by eighths of a normal distribution whose variance is the
// mean. A wrong guess costs time only. An expert without rows costs nothing, but here it counts as one piece.
constexpr double pieces_of_expert(const Config &c, int32_t size) {
  constexpr double kEighths[] = {-1.53, -0.89, -0.49, -0.16, 0.16, 0.49, 0.89, 1.53}; // of the standard deviation
  const double mean = rows_of_expert(c);
  double deviation = mean > 1 ? mean : 1;
  for (int i = 0; i < 20; ++i) // the square root
    deviation = (deviation + mean / deviation) / 2;
  double pieces = 0;
  for (double eighth : kEighths) {
    const double rows = mean + eighth * deviation;
    pieces += rows > size ? (double)(int64_t)((rows + size - 1e-9) / size) : 1;
  }
  return pieces / 8;
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
  t.form = kDecoded, t.block = 512, t.bm = bm, t.bn = 256;
  t.stages = least((kMaxSharedMemory - decoded_bytes(t.bn)) / (bm * 256 + 16), 5);
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
  for (int32_t bm : {48, 96}) // each multiplies fewer rows where an expert has fewer
    if (c.mxfp4 && c.experts <= kDecodedExperts)
      all.add(decoded_tile(bm));
  return all;
}

// Each expert that can have rows reads its W once and decodes it again for each bm of its rows. The thin form multiplies bm rows
// each time; the decoded form no more than the next multiple of its step to the rows of the expert.
constexpr LaunchCost cost(const Config &c, const Tile &t) {
  const int64_t experts = most(least(c.experts, c.rows), 1);
  const double rows = rows_of_expert(c), passes = pieces_of_expert(c, t.bm);
  const double w_bytes = c.mxfp4 ? 17.0 / 32 : bytes_of_type(c.w_type), weights = (double)experts * c.n * c.k;
  if (t.form == kPlain)
    return plain_cost((int64_t)rows + 1, experts * c.n, c.k, bytes_of_type(c.x_type), w_bytes);
  const double tiles = (double)experts * passes * (double)ceil_div(c.n, t.bn), share = tiles / kMultiprocessors;
  LaunchCost cost;
  cost.ends = t.form == kThin ? 0.2e-6 : 2e-6; // sums that meet; stages that fill
  cost.memory = (weights * w_bytes + (double)experts * rows * (c.k + c.n) * 2) / kMemoryBytes;
  cost.caches = share * ((rows < passes * t.bm ? rows / passes : t.bm) * 2.0 + t.bn * w_bytes) * c.k / kCacheBytes;
  const double height = t.form == kDecoded ? pieces_of_expert(c, kDecodedStep) * kDecodedStep / passes : t.bm; // of a tile
  cost.math = t.form == kDecoded ? share * (double)c.k * (kDecodedColumn + height * kDecodedColumnOfRow)
                                 : share * 2 * height * t.bn * (double)c.k / kWarpFlops;
  if (t.form == kDecoded && t.bm <= 48) // the same loops take less where registers need not hold the sums of wider ones
    cost.math *= 0.93;
  if (c.mxfp4 && t.form == kThin) // four blocks hide each other's latencies, fewer do so less
    cost.math += passes * weights / kMultiprocessors / (kDecodedWeights * t.blocks_at_once() / 4);
  return cost;
}
constexpr Tile choose(const Config &c) { return cheapest(c); }
// x: tiles of an expert's W; y: experts with rows, at most one a row; z: an expert's tiles of rows, in turns. Blocks of the
// decoded form take all tiles in turns.
constexpr Grid grid(const Config &c, const Tile &t) {
  const int64_t of_w = ceil_div(c.n, t.bn), experts = most(least(c.experts, c.rows), 1);
  if (t.form == kDecoded)
    return {(int32_t)least(of_w * (experts + c.rows / t.bm), kMultiprocessors)};
  const int64_t of_rows = ceil_div(c.rows, most(c.experts, 1) * (int64_t)t.bm);
  return {(int32_t)of_w, (int32_t)experts, t.form == kThin ? 1 : least(most(of_rows, 1), 8)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::grouped_linear
