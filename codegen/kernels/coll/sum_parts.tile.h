// Launch choices of coll.sum_parts on CUDA.
#pragma once
#include "codegen/kernels/coll/sum_parts.h"
#include "codegen/kernels/common/row_tile.h"

namespace k31::kernels::sum_parts {

using Tile = RowTile;

constexpr Tile choose(const Config &) { return {128}; } // threads, each of 8 columns
// x: parts of a row; y: rows, in turns.
constexpr const char *why(const Config &, const Tile &) { return "a thread adds 8 columns of a row over the ranks"; }
constexpr Grid grid(const Config &c, const Tile &t) {
  return {(int32_t)ceil_div(c.cols, t.block * 8), least(most(c.rows, 1), kMaxGridY)};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::sum_parts
