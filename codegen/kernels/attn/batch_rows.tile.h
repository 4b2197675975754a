// Launch choices of attn.batch_rows on CUDA: one block, for some numbers once an entry.
#pragma once
#include "codegen/kernels/attn/batch_rows.h"
#include "codegen/kernels/common/row_tile.h"

namespace k31::kernels::batch_rows {

using Tile = RowTile;

constexpr Tile choose(const Config &) { return {}; }
constexpr Grid grid(const Config &, const Tile &) { return {1}; }
constexpr const char *why(const Config &, const Tile &) { return "some numbers, once an entry"; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::batch_rows
