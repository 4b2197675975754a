// Launch choices of moe.route on CUDA.
#pragma once
#include "codegen/kernels/common/tile.h"
#include "codegen/kernels/moe/route.h"

namespace k31::kernels::route {

struct Tile {
  int32_t warps = 4;    // of a block
  int32_t together = 0; // 1: they share a row; 0: each takes one

  constexpr int32_t threads() const { return warps * 32; }
  // Together: a key (8 bytes) and a weight of each expert that may be chosen, the best score of a team of threads (one a thread
  // at most), a weight of each choice, and a length.
  constexpr int32_t smem(const Config &c) const { return together ? 12 * c.experts + 4 * (threads() + c.top_k + 1) : 0; }
  template <class F> static void fields(F &&f) { f("warps", &Tile::warps), f("together", &Tile::together); }
};

constexpr int32_t kMostExpertsTogether = 3072; // 12 bytes of shared memory each

// At few rows a row's time is a chain of latencies, which eight warps shorten: 4 of 896 experts a thread, and no rounds. A thread
// for each choice at least.
constexpr Tile choose(const Config &c) {
  const int32_t warps = most(ceil_div(c.experts, 64), ceil_div(c.top_k, 32));
  if (c.rows <= 2 * kMultiprocessors && c.top_k <= 256 && c.experts <= kMostExpertsTogether)
    return {least(warps, 8), 1};
  return {c.rows <= kMultiprocessors ? 1 : 4};
}
constexpr const char *why(const Config &, const Tile &t) {
  return t.together     ? "the warps of a block share a row: few rows wait for latencies"
         : t.warps == 1 ? "a warp a row, alone in its block: rows spread over the multiprocessors"
                        : "a warp a row, four in a block";
}
constexpr Grid grid(const Config &c, const Tile &t) {
  return {least(ceil_div(most(c.rows, 1), t.together ? 1 : t.warps), 8 * kMultiprocessors)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::route
