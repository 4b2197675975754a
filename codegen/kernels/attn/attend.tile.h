// Launch choices of attn.attend on CUDA.
#pragma once
#include "codegen/kernels/attn/attend.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::attend {

struct Tile {
  int32_t block = 384;               // 256 threads multiply, the others bring keys
  int32_t blocks = kMultiprocessors; // all on the device at once: parts of a row meet
  int32_t heads = 48;                // most heads of a group, which share the keys of a tile
  int32_t keys = 64;                 // of a tile

  // bf16 products of warp groups, codes included, whose rows are then a multiple of 16 bytes; else plain products, a warp a head.
  constexpr bool products(const Config &c) const {
    const bool rows = c.cache_type == DType::bf16 ? c.latent % 128 == 0 : c.cache_type == DType::f8 && c.latent % 512 == 0;
    return rows && c.latent <= 512 && c.shared % 8 == 0 && c.shared <= 64; // queries of fp32 are rounded to bf16 once
  }
  // Heads of a group of the products: groups of like size, and what a product takes, in whole and in halves.
  constexpr int32_t group(const Config &c) const {
    const int32_t groups = (c.heads + heads - 1) / heads, size = (c.heads + groups - 1) / groups;
    return size <= 16 ? 16 : size <= 32 ? 32 : 48;
  }
  constexpr int32_t chunks(const Config &c) const { return (c.latent + c.shared + 63) / 64; } // 64 columns of a tile of keys
  constexpr int32_t threads() const { return block; }
  // Queries and weights; tops, changes and totals of heads, halves of scores; two tiles of keys and their marks; barriers.
  constexpr int32_t smem(const Config &c) const {
    return products(c) ? group(c) * (128 * (chunks(c) + 1) + 12 + 4 * keys) + 2 * keys * (128 * chunks(c) + 4) + 4 * 8 : 0;
  }
  template <class F> static void fields(F &&f) {
    f("block", &Tile::block), f("blocks", &Tile::blocks), f("heads", &Tile::heads), f("keys", &Tile::keys);
  }
};

// Codes have eight warps of producers, bf16 four, which copy only.
constexpr Tile choose(const Config &c) {
  Tile t;
  t.block = t.products(c) && c.cache_type == DType::f8 ? 512 : 384;
  return t;
}
constexpr const char *why(const Config &c, const Tile &t) {
  return t.products(c) && c.cache_type == DType::f8 ? "codes become bf16 by eight warps of producers, products of warp groups; a "
                                                      "block a multiprocessor, so that parts of a row can meet"
         : t.products(c) ? "keys by producers, products of warp groups; a block a multiprocessor, so that parts of a row can meet"
                         : "plain products, a warp a head: the cache is not bf16, or its rows do not fit the products";
}
// Blocks take (row, group of heads) in turns; when these are few, each is cut into parts of its keys.
constexpr Grid grid(const Config &, const Tile &t) { return {t.blocks, 1, 1}; }

// Partial results of a block, fp32: sums [group, latent], maxima [group], totals [group].
constexpr int64_t part_floats(const Config &c, const Tile &t) { return (int64_t)most(t.group(c), t.block / 32) * (c.latent + 2); }
constexpr int64_t workspace(const Config &c, const Tile &t) { return t.blocks * part_floats(c, t) * 4; }

} // namespace k31::kernels::attend
