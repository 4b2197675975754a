// Launch choices of products x W^T on CUDA, shared by nn.linear and moe.grouped_linear.
//
// Five forms:
//   plain   any types, for correctness (common/product.cuh);
//   thin    few rows of x: memory-bound. A warp takes 16 rows of W (32 with `pair`), the warps of a block share K, W goes from
//           memory to registers once, sums meet in shared memory (common/thin.cuh);
//   wide    more rows: tiles of bm rows of x by bn rows of W, 64 columns a stage in shared memory, several stages under way
//           (common/wide.cuh);
//   mapped  tiles come by tensor maps (TMA), a producer warp beside the warp groups that multiply; with few rows the blocks of a
//           cluster can share the columns of K of a tile, `split` of them (common/mapped.cuh);
//   decoded MXFP4 weights: warp groups that multiply what they decode in registers (moe/decoded.cuh).
#pragma once
#include "codegen/kernels/common/launch_cost.h"

namespace k31::kernels {

enum ProductForm : int32_t { kPlain = 0, kThin = 1, kWide = 2, kMapped = 3, kDecoded = 4 };
constexpr const char *kProductFormNames[] = {"plain", "thin", "wide", "mapped", "decoded"};

constexpr int32_t kMaxSharedMemory = 227 << 10; // dynamic, of a block

// Of one turn of a warp with MXFP4 weights: 64 bytes of codes and 4 scales for each of bn rows.
constexpr int32_t thin_slot_bytes(int32_t bn) { return bn * 68; }
constexpr int32_t kDecodedTurns = 6;      // that a warp of the decoded form has under way, of 32 rows
constexpr int32_t kDecodedStep = 16;      // rows of x that a tile of the decoded form multiplies are a multiple of this
constexpr int32_t kDecodedExperts = 1000; // at most, of a launch in the decoded form: a block keeps their offsets

// Of a block of the decoded form beside its stages of x: turns under way, offsets, and what aligning takes.
constexpr int32_t decoded_bytes(int32_t bn) {
  return bn / 32 * kDecodedTurns * thin_slot_bytes(32) + 4 * (kDecodedExperts + 1) + 1024;
}

struct ProductTile {
  int32_t form = kPlain;
  int32_t block = 256; // threads
  int32_t bm = 16;     // rows of x of a block
  int32_t bn = 32;     // rows of W of a block
  int32_t warps_m = 1; // wide: the block's warps over bm
  int32_t warps_n = 1; // wide: over bn
  int32_t warps_k = 1; // wide: over the columns of a stage; their sums meet
  int32_t x_bytes = 2; // wide: of a value of x, 4: fp32, each value as two of bf16
  int32_t stages = 1;  // wide, mapped: stages under way; thin, MXFP4: turns under way; decoded: turns of x under way
  int32_t box_x = 0;   // mapped: rows of x that are copied, at most bm
  int32_t ahead = 0;   // mapped, wide: 1: stages of W are under way before the launches before have ended; a block takes one tile
  int32_t split = 1;   // mapped: blocks of the cluster that takes a tile, each a part of K; one tile a cluster then

  constexpr int32_t threads() const { return block; }
  // Thin with MXFP4 is bound by how much is on its way: 2 KB a warp and turn.
  constexpr int32_t blocks_at_once() const { return form == kThin && stages > 1 ? (bm == 8 ? 4 : 3) : 1; }
  constexpr int32_t stage_bytes() const { return bm * x_bytes * 64 + bn * 128; }
  constexpr int32_t smem() const {
    int32_t plain = 4 * (16 * 32 + 48 * 33); // every form falls back to the plain one
    int32_t own = form == kThin      ? block / 32 * most(bm * bn * 4, stages * thin_slot_bytes(bn))
                  : form == kWide    ? stages * stage_bytes() + 1024
                  : form == kMapped  ? stages * (stage_bytes() + 16) + 1024
                  : form == kDecoded ? decoded_bytes(bn) + stages * (bm * 256 + 16)
                                     : 0;
    return own > plain ? own : plain;
  }
  template <class C> constexpr int32_t smem(const C &) const { return smem(); }
  template <class F> static void fields(F &&f) {
    using T = ProductTile;
    f("form", &T::form), f("block", &T::block), f("bm", &T::bm), f("bn", &T::bn), f("warps_m", &T::warps_m),
        f("warps_n", &T::warps_n), f("warps_k", &T::warps_k), f("x_bytes", &T::x_bytes), f("stages", &T::stages),
        f("box_x", &T::box_x), f("ahead", &T::ahead), f("split", &T::split);
  }
};

constexpr ProductTile thin_tile(int64_t rows, int32_t warps, bool pair) {
  ProductTile t;
  t.form = kThin, t.bm = rows <= 8 ? 8 : 16, t.bn = pair ? 32 : 16, t.block = warps * 32;
  return t;
}

// bn: rows of W that a warp group multiplies at once.
constexpr ProductTile mapped_tile(int64_t rows, int32_t bn, int32_t split = 1) {
  ProductTile t;
  t.form = kMapped, t.bm = rows <= 64 ? 64 : 128, t.block = t.bm * 2 + 128, t.bn = bn, t.split = split, t.ahead = rows <= t.bm;
  t.box_x = rows < t.bm ? least(ceil_div(most(rows, 1), 16) * 16, t.bm) : t.bm;
  t.stages = least((kMaxSharedMemory - 1024) / (t.stage_bytes() + 16), 16);
  return t;
}

// Clusters of `split` blocks that an H200 surely runs at once. A cluster stays within a group of multiprocessors, and the groups
// are not equally large: 32 clusters of 4, 24 of 5 and 16 of 8 were seen to take two turns.
constexpr int32_t clusters_at_once(int32_t split) {
  constexpr int32_t kClusters[] = {0, kMultiprocessors, 64, 40, 28, 20, 16, 14, 13};
  return kClusters[split];
}
// At most 64 rows, one turn, and a stage of K for each block.
constexpr bool can_split(int64_t rows, int64_t n, int64_t k, int32_t bn, int32_t split) {
  return rows <= 64 && ceil_div(n, bn) <= clusters_at_once(split) && ceil_div(k, 64) >= split;
}

// Blocks: one a tile, or those of the mapped form, which go on from tile to tile.
constexpr int32_t product_blocks(const ProductTile &t, int64_t rows, int64_t n) {
  const int64_t tiles = ceil_div(most(rows, 1), t.bm) * ceil_div(n, t.bn);
  return t.form == kMapped ? t.split * least(tiles, kMultiprocessors) : (int32_t)tiles;
}

// x [rows, k] by W [n, k], both bf16, in the thin or the mapped form.
constexpr LaunchCost product_cost(const ProductTile &t, int64_t rows, int64_t n, int64_t k) {
  const int64_t tiles = ceil_div(most(rows, 1), t.bm) * ceil_div(n, t.bn);
  const double row = (double)k * 2; // bytes
  LaunchCost cost;
  cost.memory = ((double)n * row + (double)rows * row + (double)rows * n * 2) / kMemoryBytes;
  if (t.form == kThin) {
    // Blocks share a multiprocessor, so a part of one counts. 16 warps there keep the copies of W going; rows of x come by half
    // lines and cost twice (16 rows by this form: 52 us measured, 53 by this).
    const double blocks = tiles > kMultiprocessors ? (double)tiles / kMultiprocessors : 1, warps = blocks * (t.block / 32);
    cost.caches = blocks * (1.9 * t.bm + t.bn) * row / (warps < 16 ? kCacheBytes * warps / 16 : kCacheBytes);
    cost.math = blocks * 2 * t.bm * t.bn * (double)k / kWarpFlops;
    cost.ends = 0.1e-6 + 0.02e-6 * (t.block / 32); // the warps' sums meet
    return cost;
  }
  const double turns = turns_of(tiles * t.split), boxes = (t.box_x + t.bn) * row;
  if (t.bm == 64) { // stages of a block follow each other, each waits for the products of the one before
    const double stages = turns * ceil_div(ceil_div(k, 64), t.split), all = tiles * boxes / kCachesBytes;
    cost.caches = stages * (kStageSeconds + (t.box_x + t.bn) * 128 / kStageBytes);
    cost.caches = cost.caches < all ? all : cost.caches;
  } else {
    cost.caches = turns * boxes / kCacheBytes;
  }
  cost.math = turns * 2 * t.bm * t.bn * (double)k / t.split / kWarpGroupFlops;
  cost.ends = 1.2e-6 + turns * 0.1e-9 * t.bm * t.bn; // the first copies; the results of each tile, while nothing multiplies
  if (t.split > 1)
    cost.ends += 0.3e-6 + t.bm * t.bn * 4 / 14e9; // the blocks of a cluster meet and read each other's sums
  return cost;
}

// The same by plain loops, 16 x 32 results a block. Measured with fp32 x, bf16 W and 512 columns: 45 to 52 us up to three blocks
// on a multiprocessor (64 rows of 12 heads of 128), then 35 GFLOP/s on each; with bf16 x and 7168 columns 376 us.
constexpr LaunchCost plain_cost(int64_t rows, int64_t n, int64_t k, int32_t x_bytes, double w_bytes) {
  const int64_t blocks = ceil_div(most(rows, 1), 16) * ceil_div(n, 32);
  const double shared = 2 * 16 * 32 * (double)k * (double)blocks / kMultiprocessors / kPlainFlops;
  const double alone = (double)k * (x_bytes + w_bytes) * kPlainByte;
  LaunchCost cost;
  cost.memory = ((double)rows * k * x_bytes + (double)n * k * w_bytes) / kMemoryBytes;
  cost.caches = turns_of(blocks) * (16 * x_bytes + 32 * w_bytes) * (double)k / kCacheBytes;
  cost.math = shared > alone ? shared : alone;
  return cost;
}

} // namespace k31::kernels
