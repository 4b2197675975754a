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

// Measured between two H200: a row of 7168 bf16 values, 896 words, takes 3.5 us by 256 threads, 3.6 by 512; 16 rows 5.1 and 4.6.
constexpr Tile choose(const Config &c) { return {c.words <= 4096 ? 256 : 512}; }
constexpr const char *why(const Config &, const Tile &) {
  return "few enough blocks that all run at once, since they wait for their peers";
}
// Half of the blocks up to four words a thread: 64 rows take 7.2 us, by all of them 7.4; 256 rows 17.2 and 15.9.
constexpr Grid grid(const Config &c, const Tile &t) {
  const int32_t half = most(c.blocks / 2, 1);
  const bool all = c.words > 4 * (int64_t)t.block * half;
  return {least(most(ceil_div(c.words, t.block), 1), all ? c.blocks : half)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::peer
