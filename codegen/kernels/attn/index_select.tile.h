// Launch choices of attn.index_select on CUDA.
#pragma once
#include "codegen/kernels/attn/index_select.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::index_select {

constexpr int32_t kBins = 2048;              // of one radix digit
constexpr int32_t kDigits = 3;               // 11, 11 and 10 bits
constexpr int64_t kWorkspaceGoal = 48 << 20; // scores that stay in the second-level cache

struct Tile {
  int32_t block = 256;
  int32_t blocks = kMultiprocessors; // all on the device at once, since they meet: one a multiprocessor
  int32_t rows = 16;                 // rows of a row block
  int32_t teams = 1;                 // most row blocks under way; the blocks are divided among them

  // bf16 scores by tensor cores; else plain products.
  constexpr bool products(const Config &c) const {
    return c.q_type == DType::bf16 && c.cache_type == DType::bf16 && c.head_dim % 32 == 0 && c.head_dim <= 128;
  }
  constexpr int32_t heads(const Config &c) const { return products(c) ? (c.heads + 7) / 8 * 8 : c.heads; }
  // Queries of the row block as bf16, or of one row as fp32.
  constexpr int32_t query_bytes(const Config &c) const {
    return products(c) ? rows * heads(c) * c.head_dim * 2 : (c.heads * c.head_dim * 4 + 15) / 16 * 16;
  }
  constexpr int32_t threads() const { return block; }
  constexpr int32_t smem(const Config &c) const { // queries, weights, one histogram, state of the rows, sums
    return query_bytes(c) + (rows * heads(c) * 4 + 15) / 16 * 16 + kBins * 4 + rows * 16 + 512;
  }
  template <class F> static void fields(F &&f) {
    f("block", &Tile::block), f("blocks", &Tile::blocks), f("rows", &Tile::rows), f("teams", &Tile::teams);
  }
};

// Scratch of one team: scores [rows, max_context], histograms [digits, rows, bins], counts [rows, blocks, 2].
constexpr int64_t score_bytes(const Config &c, const Tile &t) { return ((int64_t)t.rows * c.max_context * 4 + 127) / 128 * 128; }
constexpr int64_t team_bytes(const Config &c, const Tile &t) {
  return score_bytes(c, t) + (int64_t)t.rows * (kDigits * kBins + t.blocks * 2) * 4;
}
constexpr int64_t workspace(const Config &c, const Tile &t) { return t.teams * team_bytes(c, t); }

constexpr Tile choose(const Config &c) {
  Tile t;
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
