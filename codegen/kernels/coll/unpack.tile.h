// Launch choices of coll.unpack on CUDA.
#pragma once
#include "codegen/kernels/coll/unpack.h"
#include "codegen/kernels/common/row_tile.h"

namespace k31::kernels::unpack {

using Tile = RowTile;

constexpr Tile choose(const Config &) { return {}; }
// x: rows of a piece, in turns; y: pieces.
constexpr const char *why(const Config &, const Tile &) { return "blocks take the rows of a piece in turns"; }
constexpr Grid grid(const Config &c, const Tile &) {
  return {least(most(c.capacity, 1), most(8 * kMultiprocessors / c.size, 1)), c.size};
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::unpack
