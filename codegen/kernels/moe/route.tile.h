// Launch choices of moe.route on CUDA.
#pragma once
#include "codegen/kernels/common/tile.h"
#include "codegen/kernels/moe/route.h"

namespace k31::kernels::route {

struct Tile {
  int32_t warps = 4; // of a block; each takes a row

  constexpr int32_t threads() const { return warps * 32; }
  constexpr int32_t smem(const Config &) const { return 0; }
  template <class F> static void fields(F &&f) { f("warps", &Tile::warps); }
};

constexpr Tile choose(const Config &c) { return {c.rows <= kMultiprocessors ? 1 : 4}; }
constexpr const char *why(const Config &, const Tile &t) {
  return t.warps == 1 ? "a warp a row, alone in its block: rows spread over the multiprocessors"
                      : "a warp a row, four in a block";
}
constexpr Grid grid(const Config &c, const Tile &t) { return {least(ceil_div(most(c.rows, 1), t.warps), 8 * kMultiprocessors)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::route
