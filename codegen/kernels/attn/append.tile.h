// Launch choices of attn.append on CUDA.
#pragma once
#include "codegen/kernels/attn/append.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::append {

struct Tile {
  int32_t block = 256; // threads of a block
  int32_t blocks = 264;

  constexpr int32_t threads() const { return block; }
  constexpr int32_t smem(const Config &) const { return 0; }
  template <class F> static void fields(F &&f) { f("block", &Tile::block), f("blocks", &Tile::blocks); }
};

constexpr Tile choose(const Config &) { return {}; }
constexpr const char *why(const Config &, const Tile &) { return "blocks take live rows in turns, whatever the capacity"; }
// Blocks take the live rows' accesses in turns, whatever the capacity.
constexpr Grid grid(const Config &, const Tile &t) { return {t.blocks, 1, 1}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::append
