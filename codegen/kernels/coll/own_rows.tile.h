// Launch choices of coll.own_rows on CUDA.
#pragma once
#include "codegen/kernels/coll/own_rows.h"
#include "codegen/kernels/common/row_tile.h"

namespace k31::kernels::own_rows {

using Tile = RowTile;

constexpr Tile choose(const Config &) { return {}; }
constexpr const char *why(const Config &, const Tile &) { return "blocks take rows in turns"; }
constexpr Grid grid(const Config &c, const Tile &) { return {row_blocks(c.share)}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::own_rows
