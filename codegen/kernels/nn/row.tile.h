// Launch choices of nn.row and nn.map on CUDA.
#pragma once
#include "codegen/kernels/common/tile.h"
#include "codegen/kernels/nn/row.h"

namespace k31::kernels::row {

constexpr int32_t kFewSums = 4;    // of a phase, that every warp adds up by itself
constexpr int32_t kManyWords = 16; // of elements of a thread: what they save pays for a meeting of two blocks

struct Tile {
  int32_t block = 256;
  int32_t team = 32;  // threads of one unit: a warp, or the whole block
  int32_t vector = 8; // columns of one access where operands allow it: 8 or 1
  int32_t keep = 96;  // registers a thread may spend on elements that later phases need again
  int32_t split = 1;  // blocks of the cluster that take one group of columns, equal parts each

  constexpr int32_t threads() const { return block; }
  // Values in shared memory for the sums of a phase: totals, then each warp's part.
  constexpr int32_t phase_values() const { return kMaxSums * (split + block / 32); }
  constexpr int32_t smem(const Config &) const { // a cluster's phases take turns between two places, each with a barrier
    return team <= 32 ? 0 : split > 1 ? 2 * (4 * phase_values() + 8) : 4 * phase_values();
  }
  template <class F> static void fields(F &&f) {
    f("block", &Tile::block), f("team", &Tile::team), f("vector", &Tile::vector), f("keep", &Tile::keep),
        f("split", &Tile::split);
  }
};

// Columns of a unit: one group of a reduction or a cluster's part of it; a map's row is cut into what a team takes at once.
constexpr int32_t unit_columns(const Config &c, const Tile &t) {
  return c.phases ? c.cols / c.groups / t.split : t.team * t.vector;
}
constexpr int64_t units_of_row(const Config &c, const Tile &t) { return ceil_div(c.cols, unit_columns(c, t)); }

// True when every access of 8 columns is one of whole 16-byte words, provided that all pointers are multiples of 16.
constexpr bool vectors_fit(const Config &c) {
  bool fit = c.cols % 8 == 0 && (!c.phases || c.cols / c.groups % 8 == 0);
  for (int i = 0; i < c.inputs; ++i) {
    if (c.kind[i] == (int32_t)OperandKind::element)
      fit = fit && c.ld[i] % 8 == 0;
    else if (c.kind[i] == (int32_t)OperandKind::column)
      fit = fit && c.length[i] % 8 == 0;
    else if (c.kind[i] == (int32_t)OperandKind::column_group)
      fit = fit && c.cols / c.length[i] % 8 == 0;
  }
  for (int i = 0; i < c.outputs; ++i)
    fit = fit && c.out_ld[i] % 8 == 0;
  return fit;
}

// Registers of a thread that hold the elements of a unit.
constexpr int32_t kept_words(const Config &c, const Tile &t) {
  int32_t words = 0;
  for (int i = 0; i < c.inputs; ++i)
    if (c.kind[i] == (int32_t)OperandKind::element)
      words += c.type[i] == (int32_t)DType::bf16 ? (t.vector + 1) / 2 : t.vector;
  return (int32_t)(ceil_div(unit_columns(c, t), t.team * t.vector) * words);
}

// Registers that a thread needs when it keeps the elements: those, all sums, the values of one column and what addresses take.
constexpr int32_t registers(const Config &c, const Tile &t) {
  int32_t sums = 0;
  for (int p = 0; p < c.phases; ++p)
    sums += c.sums[p];
  return kept_words(c, t) + sums + 2 * c.inputs + 32;
}

constexpr Tile choose(const Config &c, bool may_split = true) {
  Tile t;
  t.vector = vectors_fit(c) ? 8 : 1;
  if (!c.phases || c.cols / c.groups <= 1024)
    return t;
  // A block a row. With few rows as many threads as there are vectors, else the fewest that keep the elements in registers; when
  // no block keeps them (mixes of many residuals), half as many threads as vectors read them again in each phase: one block a
  // multiprocessor, so that the row stays in its first-level cache.
  const int32_t all = most(least(ceil_div(c.cols / c.groups, 32 * t.vector) * 32, 1024), 64);
  const int32_t few[] = {all, 512, 256}, many[] = {256, 512, 1024};
  const bool spread = c.rows <= 2 * kMultiprocessors; // then a few registers too many cost less than idle lanes
  // Rows of many elements that half of the multiprocessors would take: the instructions of one are what a row waits for.
  t.block = t.team = (int32_t)ceil_div(all, 64) * 32, t.split = 2;
  if (may_split && c.rows * 2 <= kMultiprocessors && all >= 512 && c.cols / c.groups % (2 * t.vector) == 0 &&
      kept_words(c, t) >= kManyWords && registers(c, t) <= 65536 / t.block * 5 / 4)
    return t;
  t.split = 1;
  for (int32_t block : spread ? few : many) {
    t.block = t.team = least(block, all);
    if (registers(c, t) <= least(65536 / t.block * (spread ? 5 : 4) / 4, 255))
      return t;
  }
  t.block = t.team = most(ceil_div(all, 64) * 32, 64), t.keep = 0;
  return t;
}
constexpr const char *why(const Config &c, const Tile &t) {
  if (!c.phases || c.cols / c.groups <= 1024)
    return "a warp a group of columns";
  if (!t.keep)
    return "a block a row that reads its elements again in each phase: registers of no block hold them";
  if (t.split > 1)
    return "two blocks a row, which exchange their sums: few rows of many elements, and the instructions of a row are its time";
  return c.rows <= 2 * kMultiprocessors ? "a block a row, as many threads as its elements fill: few rows are a chain of latencies"
                                        : "a block a row, the fewest threads that hold its elements in registers";
}
constexpr Grid grid(const Config &c, const Tile &t) {
  int64_t blocks = ceil_div(most(c.rows, 1) * units_of_row(c, t), t.block / t.team);
  return {least(blocks, (int64_t)kMultiprocessors * (4096 / t.block))}; // even, so a multiple of split
}
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::row
