// Launch choices of attn.kda on CUDA.
#pragma once
#include "codegen/kernels/attn/kda.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::kda {

constexpr int32_t kChunkTokens = 16; // of the chunk form, whatever Config::chunk says above it
constexpr int32_t kChunkStages = 4;  // prepared chunks of a block, two of each group of warps that prepare

struct Tile {
  int32_t block = 128;  // threads of a block
  int32_t values = 64;  // most values of a head that a block takes
  int32_t blocks = 528; // four a multiprocessor

  // Values of a head that a block takes: they divide the head.
  constexpr int32_t slice(const Config &c) const {
    int32_t v = least(c.head_dim, values);
    while (c.head_dim % v || v % 4)
      --v;
    return v;
  }
  constexpr int32_t groups(const Config &c) const { return block / (slice(c) / 4); } // key rows that the block holds at once
  constexpr int32_t threads() const { return block; }
  // Long segments by chunks: bf16 in, operands rounded to bf16; else token by token.
  constexpr bool chunks(const Config &c) const {
    return c.chunk >= kChunkTokens && c.qkv_type == DType::bf16 && (c.head_dim == 128 || c.head_dim == 64) &&
           block == 4 * c.head_dim && c.ld_qkv % 8 == 0 && c.ld_g % 4 == 0;
  }
  // Two tokens, partial sums and delta of the token form.
  constexpr int32_t token_bytes(const Config &c) const { return 4 * (2 * (4 * c.head_dim + 4) + (2 * groups(c) + 1) * slice(c)); }
  // Of the chunk form: stages of four operands in bf16, two small matrices, exp(G_last) and beta; and of each group that prepares
  // g and G in fp32, four operands of pairs, sums of pairs by 64 keys, A, and a flag.
  constexpr int32_t chunk_bytes(const Config &c) const {
    const int32_t half = 2 * (c.head_dim + 8), full = 4 * (c.head_dim + 4);
    return kChunkStages * (kChunkTokens * (4 * half + 2 * 48 + 4) + 4 * c.head_dim) +
           2 * (kChunkTokens * (2 * full + 4 * half + 4 * 17 * (c.head_dim / 32 + 1)) + 16);
  }
  // Two barriers a stage follow what chunks and tokens share.
  constexpr int32_t barriers_at(const Config &c) const { return ceil_div(most(token_bytes(c), chunk_bytes(c)), 16) * 16; }
  constexpr int32_t smem(const Config &c) const { return chunks(c) ? barriers_at(c) + 16 * kChunkStages : token_bytes(c); }
  template <class F> static void fields(F &&f) {
    f("block", &Tile::block), f("values", &Tile::values), f("blocks", &Tile::blocks);
  }
};

constexpr Tile choose(const Config &c) {
  Tile chunked;
  chunked.block = 4 * c.head_dim, chunked.blocks = kMultiprocessors;
  return chunked.chunks(c) ? chunked : Tile{};
}
constexpr const char *why(const Config &c, const Tile &t) {
  return t.chunks(c) ? "by chunks of 16 tokens, prepared ahead by half of the warps: their products run on tensor cores, the "
                       "state stays in registers"
                     : "token by token: the state stays in registers, slices of a head's values in blocks of their own";
}
// Blocks take (segment, head, slice of values) in turns, whatever the capacity.
constexpr Grid grid(const Config &, const Tile &t) { return {t.blocks, 1, 1}; }
constexpr int64_t workspace(const Config &, const Tile &) { return 0; }

} // namespace k31::kernels::kda
