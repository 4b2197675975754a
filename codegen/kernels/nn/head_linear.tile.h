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

// A head's matrix is small (128 x 512), so two stages of a tile of 64 columns keep many blocks at work on a multiprocessor.
constexpr Tile choose(const Config &c) {
  Tile t;
  if (!tensor_cores_fit(c))
    return t;
  t.form = kWide, t.bn = 64, t.stages = 3;
  t.bm = c.rows <= 16 ? 16 : c.rows <= 32 ? 32 : c.rows <= 64 ? 64 : 128;
  t.warps_m = t.bm >= 64 ? t.bm / 32 : t.bm / 16, t.warps_n = 2;
  t.block = 32 * t.warps_m * t.warps_n;
  return t;
}
// x: tiles of a head's columns; y: heads; z: tiles of rows, in turns.
constexpr Grid grid(const Config &c, const Tile &t) {
  return {(int32_t)ceil_div(c.out, t.bn), c.heads, least(ceil_div(most(c.rows, 1), t.bm), kMaxGridY)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::head_linear
