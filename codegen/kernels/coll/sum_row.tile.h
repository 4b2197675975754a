// Launch choices of coll.sum_row on CUDA: a block has a row, or two blocks half of one each. All of them must run at once, since
// they wait for their peers.
#pragma once
#include "codegen/kernels/coll/peer.tile.h"
#include "codegen/kernels/coll/sum_row.h"
#include "codegen/kernels/nn/row.tile.h"

namespace k31::kernels::sum_row {

using Tile = kernels::row::Tile;

constexpr Tile choose(const Config &c) {
  kernels::row::Config row = c.row;
  row.rows = c.rows;
  if (row.phases && row.cols / row.groups > 1024)
    return kernels::row::choose(row, row.groups == 1 && c.peer.words % 2 == 0 && c.rows * 2 <= c.peer.blocks);
  Tile t = kernels::row::choose(row);
  // A unit of the region is what the block has of the row, where that is one group: a thread goes on with what it has summed.
  t.block = least(most(ceil_div(row.cols, 32 * t.vector) * 32, 64), 1024);
  t.team = row.groups == 1 ? t.block : 32;
  return t;
}
constexpr const char *why(const Config &, const Tile &t) {
  return t.split > 1 ? "two blocks a row, which exchange half of it each, and the sums of their halves"
                     : "a block a row, all at once, since they wait for their peers";
}
constexpr Grid grid(const Config &c, const Tile &t) { return {most(c.rows, 1) * t.split}; }

// Scratch of the row op, then words of each rank's piece.
constexpr int32_t row_smem(const Config &c, const Tile &t) { return (t.smem(c.row) + 15) / 16 * 16; }
constexpr int32_t smem(const Config &c, const Tile &t) { return row_smem(c, t) + 8 * kMaxPeers; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::sum_row
