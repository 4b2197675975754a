// Launch choices of attn.kda on CUDA.
#pragma once
#include "codegen/kernels/attn/kda.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::kda {

struct Tile {
  int32_t block = 128;  // threads of a block
  int32_t values = 64;  // most values of a head that a block takes
  int32_t blocks = 528; // four a multiprocessor

  // Values of a head that a block takes: they divide the head.
  constexpr int32_t slice(const Config &c) const {
    int32_t v = least(c.head_dim, values);
    while (c.head_dim % v || v % 4)
      --v;
    return v;
  }
  constexpr int32_t groups(const Config &c) const { return block / (slice(c) / 4); } // key rows that the block holds at once
  constexpr int32_t threads() const { return block; }
  constexpr int32_t smem(const Config &c) const {
    return 4 * (2 * (4 * c.head_dim + 4) + (2 * groups(c) + 1) * slice(c)); // two tokens, partial sums, delta
  }
  template <class F> static void fields(F &&f) {
    f("block", &Tile::block), f("values", &Tile::values), f("blocks", &Tile::blocks);
  }
};

constexpr Tile choose(const Config &) { return {}; }

// Blocks take (segment, head, slice of values) in turns, whatever the capacity.
constexpr Grid grid(const Config &, const Tile &t) { return {t.blocks, 1, 1}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::kda
