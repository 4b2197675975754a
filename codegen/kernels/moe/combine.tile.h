// Launch choices of moe.combine on CUDA.
#pragma once
#include "codegen/kernels/common/tile.h"
#include "codegen/kernels/moe/combine.h"

namespace k31::kernels::combine {

struct Tile {
  int32_t block = 128; // threads, each of 8 columns

  constexpr int32_t threads() const { return block; }
  constexpr int32_t smem(const Config &) const { return 0; }
  template <class F> static void fields(F &&f) { f("block", &Tile::block); }
};

constexpr Tile choose(const Config &) { return {}; }
// x: parts of a row; y: rows, in turns.
constexpr Grid grid(const Config &c, const Tile &t) {
  return {(int32_t)ceil_div(c.cols, t.block * 8), least(most(c.rows, 1), kMaxGridY)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::combine
