// Launch choices of attn.attend on CUDA.
#pragma once
#include "codegen/kernels/attn/attend.h"
#include "codegen/kernels/common/tile.h"

namespace k31::kernels::attend {

struct Tile {
  int32_t block = 256;
  int32_t blocks = kMultiprocessors; // all on the device at once: parts of a row meet
  int32_t heads = 48;                // most heads of a group, which share the keys of a tile
  int32_t keys = 64;                 // of a tile

  // bf16 products by tensor cores; else plain products, a warp a head.
  constexpr bool products(const Config &c) const {
    return c.q_type == DType::bf16 && c.shared_type == DType::bf16 && c.cache_type == DType::bf16 && c.latent % 128 == 0 &&
           (c.latent + c.shared) % 32 == 0 && smem(c) <= 227 << 10;
  }
  // Heads of a group of the products: a multiple of 16, groups of like size.
  constexpr int32_t group(const Config &c) const {
    const int32_t groups = (c.heads + heads - 1) / heads;
    return ((c.heads + groups - 1) / groups + 15) / 16 * 16;
  }
  constexpr int32_t width(const Config &c) const { return c.latent + c.shared; }
  constexpr int32_t key_bytes(const Config &c) const { return width(c) * 2 + 16; } // a padded row: no bank conflicts of ldmatrix
  constexpr int32_t score_width() const { return keys + 4; }
  constexpr int32_t weight_bytes() const { return keys * 2 + 16; }
  constexpr int32_t threads() const { return block; }
  // Queries, two tiles of keys, scores, weights, statistics of heads, which keys count.
  constexpr int32_t smem(const Config &c) const {
    return group(c) * width(c) * 2 + 2 * keys * key_bytes(c) + group(c) * (score_width() * 4 + weight_bytes() + 12) +
           2 * keys * 4;
  }
  template <class F> static void fields(F &&f) {
    f("block", &Tile::block), f("blocks", &Tile::blocks), f("heads", &Tile::heads), f("keys", &Tile::keys);
  }
};

constexpr Tile choose(const Config &) { return {}; }

// Blocks take (row, group of heads) in turns; when these are few, each is cut into parts of its keys.
constexpr Grid grid(const Config &, const Tile &t) { return {t.blocks, 1, 1}; }

// Partial results of a block, fp32: sums [group, latent], maxima [group], totals [group].
constexpr int64_t part_floats(const Config &c, const Tile &t) { return (int64_t)most(t.group(c), t.block / 32) * (c.latent + 2); }
constexpr int64_t workspace(const Config &c, const Tile &t) { return t.blocks * part_floats(c, t) * 4; }

} // namespace k31::kernels::attend
