// Launch choices of coll.part on CUDA.
#pragma once
#include "codegen/kernels/coll/part.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::part {

struct Tile {
  int32_t block = 256;

  constexpr int32_t threads() const { return block; }
  constexpr int32_t smem(const Config &) const { return 0; }
  template <class F> static void fields(F &&f) { f("block", &Tile::block); }
};

constexpr Tile choose(const Config &) { return {}; }
constexpr Grid grid(const Config &c, const Tile &) { return {least(most(c.rows, 1), 8 * kMultiprocessors)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::part
