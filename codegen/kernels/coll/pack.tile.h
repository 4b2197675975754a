// Launch choices of coll.pack on CUDA.
#pragma once
#include "codegen/kernels/coll/pack.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::pack {

struct Tile {
  int32_t block = 256;

  constexpr int32_t threads() const { return block; }
  // A sum a warp, and the places of the rows of one step.
  constexpr int32_t smem(const Config &) const { return 4 * (32 + block); }
  template <class F> static void fields(F &&f) { f("block", &Tile::block); }
};

constexpr Tile choose(const Config &) { return {}; }
constexpr const char *why(const Config &, const Tile &) { return "blocks of a rank each make one run of its piece"; }
// x: runs of rows, of 16 at least; y: ranks. Every block looks at the ids of all rows before its run.
constexpr Grid grid(const Config &c, const Tile &) {
  return {least(most(ceil_div((int64_t)c.rows, 16), 1), most(2 * kMultiprocessors / c.size, 1)), c.size};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::pack
