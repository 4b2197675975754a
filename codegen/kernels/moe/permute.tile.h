// Launch choices of moe.permute on CUDA.
#pragma once
#include "codegen/kernels/common/tile.h"
#include "codegen/kernels/moe/permute.h"

namespace k31::kernels::permute {

// Few: a choice's number takes the lower bits of a key (permute_few.cuh), its expert those above.
constexpr int32_t kChoiceBits = 12, kFewChoices = 1 << kChoiceBits;
constexpr int32_t kMostExpertsFew = (1 << (31 - kChoiceBits)) - 1;

struct Tile {
  int32_t block = 512;
  int32_t few = 0; // 1: places by comparing the choices with each other

  constexpr int32_t threads() const { return block; }
  // Few: a length and the key of each choice. Else two counters an expert (all choices, those before the block's own), a sum a
  // warp, and the block's ids of one step.
  constexpr int32_t smem(const Config &c) const { return 4 * (few ? 1 + c.rows * c.top_k : 2 * c.experts + 32 + block); }
  template <class F> static void fields(F &&f) { f("block", &Tile::block), f("few", &Tile::few); }
};

constexpr Tile choose(const Config &c) { return {512, (int64_t)c.rows * c.top_k <= kFewChoices && c.experts <= kMostExpertsFew}; }
constexpr const char *why(const Config &, const Tile &t) {
  return t.few ? "few choices: a warp finds the place of one by comparing it with all"
               : "every block counts all choices; a block for 16 of them, at most one a multiprocessor";
}
// Every block reads all choices, so more blocks than can run at once gain nothing. Few: a warp for each choice and each offset.
constexpr Grid grid(const Config &c, const Tile &t) {
  const int64_t choices = (int64_t)c.rows * c.top_k;
  return {least(t.few ? ceil_div(choices + c.experts + 1, t.threads() / 32) : most(ceil_div(choices, 16), 1), kMultiprocessors)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::permute
