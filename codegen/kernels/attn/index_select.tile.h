// Launch choices of attn.index_select on CUDA.
#pragma once
#include "codegen/kernels/attn/index_select.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::index_select {

constexpr int32_t kBins = 2048;              // of one radix digit
constexpr int32_t kDigits = 3;               // 11, 11 and 10 bits
constexpr int64_t kWorkspaceGoal = 48 << 20; // scores that stay in the second-level cache
constexpr int64_t kWideGoal = 64 << 20;      // scores of many rows: a row for each multiprocessor up to 128 K positions
constexpr int32_t kWideColumns = 512;        // (row, head) pairs that meet a tile of keys
constexpr int32_t kWideKeys = 128;           // of a tile

struct Tile {
  int32_t block = 256;
  int32_t blocks = kMultiprocessors; // all on the device at once, since they meet: one a multiprocessor
  int32_t rows = 16;                 // rows of a row block
  int32_t teams = 1;                 // most row blocks under way; the blocks are divided among them
  int32_t wide = 0;                  // 1: many rows, scores by products of warp groups (index_select_wide.cuh)

  // bf16 scores by tensor cores; else plain products.
  constexpr bool products(const Config &c) const {
    return c.q_type == DType::bf16 && (c.cache_type == DType::bf16 || c.cache_type == DType::i8) && c.head_dim % 32 == 0 &&
           c.head_dim <= 128;
  }
  constexpr bool can_be_wide(const Config &c) const { return products(c) && c.head_dim % 64 == 0 && c.heads <= 64; }
  // Columns of a row; wide: a power of two.
  constexpr int32_t heads(const Config &c) const {
    for (int32_t n = 8; wide && n < 64; n *= 2)
      if (c.heads <= n)
        return n;
    return wide ? 64 : products(c) ? (c.heads + 7) / 8 * 8 : c.heads;
  }
  constexpr int32_t group(const Config &c) const { return kWideColumns / heads(c); } // wide: rows that meet a tile of keys
  // Queries of the row block as bf16, or of one row as fp32; wide: queries of a group of rows and two tiles of keys.
  constexpr int32_t query_bytes(const Config &c) const {
    if (wide)
      return (kWideColumns + 2 * kWideKeys) * c.head_dim * 2;
    return products(c) ? rows * heads(c) * c.head_dim * 2 : (c.heads * c.head_dim * 4 + 15) / 16 * 16;
  }
  constexpr int32_t weight_bytes(const Config &c) const { return wide ? kWideColumns * 4 : (rows * heads(c) * 4 + 15) / 16 * 16; }
  constexpr int32_t threads() const { return block; }
  constexpr int32_t histograms() const { return kDigits + 2 * wide; } // of a row
  constexpr int32_t smem(const Config &c) const {                     // queries, weights, one histogram, state of the rows, sums
    return query_bytes(c) + weight_bytes(c) + kBins * 4 + rows * 16 + 512 + (wide ? rows * 16 : 0);
  }
  template <class F> static void fields(F &&f) {
    f("block", &Tile::block), f("blocks", &Tile::blocks), f("rows", &Tile::rows), f("teams", &Tile::teams),
        f("wide", &Tile::wide);
  }
};

// Scratch of one team: scores [rows, max_context], histograms [rows, bins], counts [rows, blocks, 2].
constexpr int64_t score_bytes(const Config &c, const Tile &t) { return ((int64_t)t.rows * c.max_context * 4 + 127) / 128 * 128; }
constexpr int64_t team_bytes(const Config &c, const Tile &t) {
  return score_bytes(c, t) + (int64_t)t.rows * (t.histograms() * kBins + t.blocks * 2) * 4;
}
constexpr int64_t workspace(const Config &c, const Tile &t) { return t.teams * team_bytes(c, t); }

constexpr Tile choose(const Config &c) {
  Tile t;
  if (t.can_be_wide(c) && c.runs) {
    t.wide = 1;
    const int32_t group = t.group(c);
    t.rows = most(1, least(128, kWideGoal / ((int64_t)c.max_context * 4)) / group) * group;
    t.rows = least(t.rows, ceil_div(c.rows, group) * group);
    if ((int64_t)t.rows * c.max_context * 4 <= 4 * kWideGoal)
      return t;
    t = Tile();
  }
  while (t.rows > 1 && t.smem(c) > 200 << 10)
    t.rows /= 2;
  t.teams = most(1, least(kMultiprocessors / 4, kWorkspaceGoal / team_bytes(c, t)));
  if (c.rows > 0)
    t.teams = least(t.teams, ceil_div(c.rows, t.rows));
  return t;
}
constexpr const char *why(const Config &c, const Tile &t) {
  return t.products(c) ? "scores on tensor cores; as many rows at once as have room for their scores in the second-level cache"
                       : "plain products: queries or keys are not bf16";
}
constexpr Grid grid(const Config &, const Tile &t) { return {t.blocks, 1, 1}; }

} // namespace k31::kernels::index_select
