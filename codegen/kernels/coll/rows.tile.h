// Launch choices of coll.rows on CUDA.
#pragma once
#include "codegen/kernels/coll/rows.h"
#include "codegen/kernels/common/row_tile.h"

namespace k31::kernels::rows {

using Tile = RowTile;

constexpr Tile choose(const Config &) { return {}; }
constexpr Grid grid(const Config &c, const Tile &) { return {row_blocks(c.share)}; }
constexpr const char *why(const Config &, const Tile &) { return "each block copies the rows of its turns"; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::rows
