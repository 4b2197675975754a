// Launch choices of coll.pack on CUDA.
#pragma once
#include "codegen/kernels/coll/pack.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::pack {

struct Tile {
  int32_t block = 256;
  int32_t few = 0; // 1: a warp a row, which finds its place alone

  constexpr int32_t threads() const { return block; }
  // A sum a warp, and the places of the rows of one step.
  constexpr int32_t smem(const Config &) const { return few ? 0 : 4 * (32 + block); }
  template <class F> static void fields(F &&f) { f("block", &Tile::block), f("few", &Tile::few); }
};

constexpr int32_t kFewRows = 128; // a warp looks at all of them, 32 at a time

constexpr Tile choose(const Config &c) { return {256, c.rows <= kFewRows}; }
constexpr const char *why(const Config &, const Tile &t) {
  return t.few ? "few rows: a warp a row and rank looks at the choices of all"
               : "blocks of a rank each make one run of its piece";
}
// x: runs of rows, of 16 at least (few: a row a warp); y: ranks. Every block looks at the ids of all rows before its run.
constexpr Grid grid(const Config &c, const Tile &t) {
  const int32_t rows = t.few ? t.threads() / 32 : 16;
  return {least(most(ceil_div((int64_t)c.rows, rows), 1), t.few ? kFewRows : most(2 * kMultiprocessors / c.size, 1)), c.size};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::pack
