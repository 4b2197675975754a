// Launch choices of coll.peer on CUDA. Blocks wait for their peers: all of them must run at once, so they are few.
#pragma once
#include "codegen/kernels/coll/peer.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::peer {

struct Tile {
  int32_t block = 512;

  constexpr int32_t threads() const { return block; }
  // Words of each rank's piece.
  constexpr int32_t smem(const Config &) const { return 8 * kMaxPeers; }
  template <class F> static void fields(F &&f) { f("block", &Tile::block); }
};

// One word a thread as long as the blocks last: short messages are made of waiting, not of bytes.
constexpr Tile choose(const Config &c) { return {c.words <= 256 * c.blocks ? 256 : 512}; }
constexpr const char *why(const Config &, const Tile &) {
  return "few enough blocks that all run at once, since they wait for their peers";
}
constexpr Grid grid(const Config &c, const Tile &t) { return {least(most(ceil_div(c.words, t.block), 1), c.blocks)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::peer
