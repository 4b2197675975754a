// Launch choices of moe.permute on CUDA.
#pragma once
#include "codegen/kernels/common/tile.h"
#include "codegen/kernels/moe/permute.h"

namespace k31::kernels::permute {

struct Tile {
  int32_t block = 512;

  constexpr int32_t threads() const { return block; }
  // Two counters an expert (all choices, those before the block's own), a sum a warp, and the block's ids of one step.
  constexpr int32_t smem(const Config &c) const { return 4 * (2 * c.experts + 32 + block); }
  template <class F> static void fields(F &&f) { f("block", &Tile::block); }
};

constexpr Tile choose(const Config &) { return {}; }
constexpr const char *why(const Config &, const Tile &) {
  return "every block counts all choices; a block for 16 of them, at most one a multiprocessor";
}
// Every block counts all choices, so more blocks than can run at once gain nothing; few choices need few blocks.
constexpr Grid grid(const Config &c, const Tile &) {
  return {least(most(ceil_div((int64_t)c.rows * c.top_k, 16), 1), kMultiprocessors)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::permute
