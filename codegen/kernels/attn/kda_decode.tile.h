// Launch choices of attn.kda_decode on CUDA.
#pragma once
#include "codegen/kernels/attn/kda_decode.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::kda_decode {

struct Tile {
  int32_t block = 256;                   // threads of a block
  int32_t blocks = 2 * kMultiprocessors; // all at once

  constexpr int32_t threads() const { return block; }
  constexpr int32_t groups(const Config &c) const { return block / (c.kda.head_dim / 4); }               // key rows at once
  constexpr int32_t keys(const Config &c) const { return (int32_t)ceil_div(c.kda.head_dim, groups(c)); } // of a thread
  // 512 threads a multiprocessor: 128 registers each, 64 of them for the state of a head of 128 values.
  constexpr int32_t blocks_at_once() const { return 512 / block; }
  // Two tokens, partial sums, delta and output; the state of the next unit, 16 bytes a thread and key.
  constexpr int32_t smem(const Config &c) const {
    return 4 * c.kda.head_dim * (2 * 5 + 2 * groups(c) + 2) + 16 * block * keys(c);
  }
  template <class F> static void fields(F &&f) { f("block", &Tile::block), f("blocks", &Tile::blocks); }
};

constexpr Tile choose(const Config &c) {
  Tile t;
  t.block = c.kda.head_dim > 64 ? 256 : 128, t.blocks = kMultiprocessors * t.blocks_at_once();
  return t;
}
constexpr const char *why(const Config &, const Tile &) {
  return "a block a (segment, head) with its state in registers, while the next one's is on its way into shared memory";
}
// Blocks take (segment, head) in turns. A segment has a row, so that there are at most as many as rows.
constexpr Grid grid(const Config &c, const Tile &t) { return {least((int64_t)most(c.rows, 1) * c.kda.heads, t.blocks)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::kda_decode
