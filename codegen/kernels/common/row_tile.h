// Launch choices of CUDA kernels that copy or add rows of elements: nothing but the threads of a block.
#pragma once
#include "codegen/kernels/common/tile.h"

namespace k31::kernels {

struct RowTile {
  int32_t block = 256;

  constexpr int32_t threads() const { return block; }
  template <class C> constexpr int32_t smem(const C &) const { return 0; }
  template <class F> static void fields(F &&f) { f("block", &RowTile::block); }
};

// Blocks that take rows in turns.
constexpr int32_t row_blocks(int64_t rows) { return least(most(rows, 1), 8 * kMultiprocessors); }

} // namespace k31::kernels
