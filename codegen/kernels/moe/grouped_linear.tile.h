// Launch choices of moe.grouped_linear on CUDA.
#pragma once
#include "codegen/kernels/common/product_tile.h"
#include "codegen/kernels/moe/grouped_linear.h"

namespace k31::kernels::grouped_linear {

using Tile = ProductTile;

constexpr bool tensor_cores_fit(const Config &c) {
  return c.x_type == DType::bf16 && (c.mxfp4 || c.w_type == DType::bf16) && c.k % 8 == 0 && c.ld_x % 8 == 0 && c.n % 8 == 0;
}

// The capacity allows rows / experts rows an expert when all experts are here; with experts spread over ranks fewer come. The
// guess between: a quarter. More rows than bm are taken in turns, so a wrong guess costs time only.
constexpr Tile choose(const Config &c) {
  Tile t;
  if (!tensor_cores_fit(c))
    return t;
  int64_t guess = ceil_div(c.rows, 4 * (int64_t)most(c.experts, 1));
  if (guess <= 16) {
    t.form = kThin, t.block = 128, t.bm = guess <= 8 ? 8 : 16, t.bn = c.pair ? 32 : 16;
  } else {
    t.form = kWide, t.block = 256, t.bm = guess <= 32 ? 32 : guess <= 64 ? 64 : 128, t.bn = 128, t.stages = 4;
    t.warps_m = 2, t.warps_n = 4;
  }
  return t;
}
// x: tiles of an expert's W; y: experts with rows, at most one a row; z: an expert's tiles of rows, in turns.
constexpr Grid grid(const Config &c, const Tile &t) {
  int64_t tiles = ceil_div(c.rows, most(c.experts, 1) * (int64_t)t.bm);
  return {(int32_t)ceil_div(c.n, t.bn), most(least(c.experts, c.rows), 1), t.form == kThin ? 1 : least(most(tiles, 1), 8)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::grouped_linear
