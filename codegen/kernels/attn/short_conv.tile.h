// Launch choices of attn.short_conv on CUDA.
#pragma once
#include "codegen/kernels/attn/short_conv.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::short_conv {

struct Tile {
  int32_t block = 256; // threads of a block
  int32_t blocks = 792;
  int32_t rows = 32; // most rows that a thread walks

  constexpr int32_t threads() const { return block; }
  constexpr int32_t smem(const Config &) const { return 0; }
  template <class F> static void fields(F &&f) { f("block", &Tile::block), f("blocks", &Tile::blocks), f("rows", &Tile::rows); }
};

constexpr Tile choose(const Config &) { return {}; }
constexpr const char *why(const Config &, const Tile &) {
  return "threads walk live rows with 8 channels each, whatever the capacity";
}
// Threads take runs of live rows and 8 channels each in turns, whatever the capacity.
constexpr Grid grid(const Config &, const Tile &t) { return {t.blocks, 1, 1}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::short_conv
