// Launch choices of coll.join on CUDA.
#pragma once
#include "codegen/kernels/coll/join.h"
#include "codegen/kernels/common/row_tile.h"

namespace k31::kernels::join {

using Tile = RowTile;

constexpr Tile choose(const Config &) { return {}; }
constexpr const char *why(const Config &, const Tile &) { return "blocks take rows in turns"; }
// x: rows, in turns; y: ranks.
constexpr Grid grid(const Config &c, const Tile &) { return {row_blocks(c.capacity), c.size}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::join
