// Launch choices of products x W^T on CUDA, shared by nn.linear and moe.grouped_linear.
//
// Three forms:
//   plain   any types, for correctness (common/product.cuh);
//   thin    few rows of x: memory-bound. A warp takes 16 rows of W (32 with `pair`), the warps of a block share K, W goes from
//   memory
//           to registers once, sums meet in shared memory (common/thin.cuh);
//   wide    more rows: tiles of bm rows of x by bn rows of W, 64 columns a stage in shared memory, several stages under way
//           (common/wide.cuh).
#pragma once
#include "codegen/kernels/common/tile.h"

namespace k31::kernels {

enum ProductForm : int32_t { kPlain = 0, kThin = 1, kWide = 2 };

struct ProductTile {
  int32_t form = kPlain;
  int32_t block = 256; // threads
  int32_t bm = 16;     // rows of x of a block
  int32_t bn = 32;     // rows of W of a block
  int32_t warps_m = 1; // wide: the block's warps over bm
  int32_t warps_n = 1; // wide: over bn
  int32_t stages = 1;  // wide: stages under way
  int32_t wgmma = 0;   // wide: 1: products of a warp group from shared memory; 0: products of a warp

  constexpr int32_t threads() const { return block; }
  constexpr int32_t stage_bytes() const { return (bm + bn) * 128; }
  constexpr int32_t smem() const {
    int32_t plain = 4 * (16 * 32 + 48 * 33); // every form falls back to the plain one
    int32_t own = form == kThin ? block / 32 * bm * bn * 4 : form == kWide ? stages * stage_bytes() + 1024 : 0;
    return own > plain ? own : plain;
  }
  template <class C> constexpr int32_t smem(const C &) const { return smem(); }
  template <class F> static void fields(F &&f) {
    using T = ProductTile;
    f("form", &T::form), f("block", &T::block), f("bm", &T::bm), f("bn", &T::bn), f("warps_m", &T::warps_m),
        f("warps_n", &T::warps_n), f("stages", &T::stages), f("wgmma", &T::wgmma);
  }
};

// Warps of a block, a power of two, so that about 16 warps a multiprocessor are at work on W.
constexpr ProductTile thin_tile(int64_t rows, int64_t n, bool pair) {
  ProductTile t;
  t.form = kThin, t.bm = rows <= 8 ? 8 : 16, t.bn = pair ? 32 : 16;
  int32_t warps = 4;
  while (warps < 16 && ceil_div(n, t.bn) * warps < 16 * kMultiprocessors)
    warps *= 2;
  t.block = warps * 32;
  return t;
}

constexpr ProductTile wide_tile(int64_t rows, int64_t n) {
  ProductTile t;
  t.form = kWide, t.block = 256;
  if (rows <= 64) { // memory-bound: small tiles for many blocks, deep stages
    t.bm = rows <= 32 ? 32 : 64;
    t.bn = n >= 96 * 128 ? 128 : n >= 96 * 64 ? 64 : 32;
    t.stages = 6;
    t.warps_m = t.bm / (t.bn == 32 ? 16 : 32), t.warps_n = t.bn / 32;
    t.block = t.warps_m * t.warps_n * 32;
  } else {
    t.bm = 128, t.bn = 128, t.stages = 4, t.warps_m = 2, t.warps_n = 4;
  }
  return t;
}

// Tiles for wgmma: 128 rows of x by 128 or 256 rows of W, a warp group 64 rows.
constexpr ProductTile warp_group_tile(int32_t bn) {
  ProductTile t;
  t.form = kWide, t.block = 256, t.bm = 128, t.bn = bn, t.warps_m = 8, t.warps_n = 1, t.stages = bn == 256 ? 4 : 6, t.wgmma = 1;
  return t;
}

constexpr int32_t product_tiles(const ProductTile &t, int64_t rows, int64_t n) {
  return (int32_t)(ceil_div(most(rows, 1), t.bm) * ceil_div(n, t.bn));
}

} // namespace k31::kernels
