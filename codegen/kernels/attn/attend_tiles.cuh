// The keys of attn.attend's products: a warp group of producers brings tiles of 64 keys, dense or gathered, into shared memory in
// chunks of 64 columns (128-byte swizzle), one tile ahead of the products: bf16 by cp.async; codes through registers, where they
// become bf16, exactly.
#pragma once
#include "codegen/kernels/attn/attend.tile.h"
#include "codegen/kernels/attn/attend_unit.cuh"
#include "codegen/kernels/common/mbarrier.cuh"

namespace k31::kernels::attend {

template <Config c, Tile t> struct Tiles {
  static constexpr int kGroup = t.group(c), kKeys = 64, kChunks = t.chunks(c);
  static constexpr int kWidth = c.latent + c.shared, kLatentChunks = c.latent / 64;
  static constexpr int kChunkBytes = kKeys * 128, kTileBytes = kChunks * kChunkBytes;
  static constexpr int kConsumers = 256, kProducers = 128;
  static_assert(t.block == kConsumers + kProducers && kLatentChunks % 2 == 0 && c.shared % 8 == 0 && c.shared <= 64);

  const Args &args;
  unsigned char *tiles;  // [2, chunk, key] rows of 64 columns
  float *valid;          // [2, keys]: 0, or -inf where an entry counts nothing
  Barrier *full, *empty; // [2]

  K31_DEVICE explicit Tiles(const Args &args) : args(args) {}
  K31_DEVICE unsigned char *tile_at(uint32_t tile) const { return tiles + tile % 2 * kTileBytes; }

  // This thread's four keys of a tile: their positions, then their rows of the cache, -1 for none. Positions are read two tiles
  // ahead and rows one: no copy waits for either.
  K31_DEVICE static void find_positions(const Keys &keys, int64_t first, int64_t end, int thread, int32_t (&positions)[4]) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int64_t entry = first + thread / 8 + 16 * r;
      positions[r] = entry < end ? (int32_t)keys.position(entry) : -1;
    }
  }
  K31_DEVICE static void find_rows(const Keys &keys, const int32_t (&positions)[4], int32_t (&rows)[4]) {
#pragma unroll
    for (int r = 0; r < 4; ++r)
      rows[r] = positions[r] < 0 ? -1 : (int32_t)cache_row(keys.table, positions[r]);
  }
  // This thread's codes of 128 columns, two chunks: eight of each chunk of its four keys, and their scales. Rows < 0 give zeros.
  struct Codes {
    uint2 code[2][4];
    uint32_t scale[4];
    K31_DEVICE void load(const char *const (&from)[4], const int (&bytes)[4], int word, int columns) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const bool there = bytes[r] > 0;
        scale[r] = there ? *(const uint32_t *)(from[r] - word * 8 + row_scales_at(c.latent) + columns * 4) : 0;
#pragma unroll
        for (int j = 0; j < 2; ++j)
          code[j][r] = there ? *(const uint2 *)(from[r] + columns * 128 + j * 64) : make_uint2(0, 0);
      }
    }
    K31_DEVICE void store(unsigned char *to) const {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const uint32_t factor = code_factor(scale[r]);
#pragma unroll
        for (int j = 0; j < 2; ++j)
          *(uint4 *)(to + j * kChunkBytes + r * 2048) = decode_codes(code[j][r], factor);
      }
    }
  };
  // A tile of codes: loads of the next 128 columns are under way while these are decoded.
  K31_DEVICE void bring_codes(const char *const (&from)[4], const int (&bytes)[4], int word, unsigned char *to,
                              Codes &first) const {
#pragma unroll
    for (int r = 0; r < 4 * (c.shared > 0); ++r)
      copy_async16(to + kLatentChunks * kChunkBytes + r * 2048,
                   from[r] + row_rest_at(c.latent) + word * 8, // from[r] is `word` codes of 8 on
                   word * 8 < c.shared ? bytes[r] : 0);
    Codes second;
#pragma unroll
    for (int i = 0; i < kLatentChunks / 2; i += 2) {
      second.load(from, bytes, word, i + 1);
      first.store(to + 2 * i * kChunkBytes);
      if (i + 2 < kLatentChunks / 2)
        first.load(from, bytes, word, i + 2);
      second.store(to + 2 * (i + 1) * kChunkBytes);
    }
    fence_async_proxy();
  }
  K31_DEVICE void produce(const Shares<c, t, kGroup> &shares) const {
    const int thread = threadIdx.x - kConsumers, word = thread % 8;
    uint32_t tile = 0; // so far
    Unit u;
    for (int i = 0; shares.unit(i, u); ++i) {
      const Keys keys = keys_of<c>(args, u.row);
      int32_t rows[4], positions[4];
      find_positions(keys, u.first, u.end, thread, positions);
      find_rows(keys, positions, rows);
      find_positions(keys, u.first + kKeys, u.end, thread, positions);
      for (int64_t first = u.first; first < u.end; first += kKeys, ++tile) {
        const char *from[4];
        int bytes[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          bytes[r] = rows[r] < 0 ? 0 : 16;
          from[r] = (const char *)args.pages + (int64_t)(rows[r] < 0 ? 0 : rows[r]) * c.row_bytes() +
                    word * (c.cache_type == DType::f8 ? 8 : 16);
        }
        Codes codes;
        if constexpr (c.cache_type == DType::f8)
          codes.load(from, bytes, word, 0);
        find_rows(keys, positions, rows);
        find_positions(keys, first + 2 * kKeys, u.end, thread, positions);
        barrier_wait(empty + tile % 2, tile / 2 % 2 ^ 1);
        if (word == 0) {
#pragma unroll
          for (int r = 0; r < 4; ++r)
            valid[tile % 2 * kKeys + thread / 8 + 16 * r] = bytes[r] ? 0 : minus_infinity();
        }
        unsigned char *to = tile_at(tile) + thread / 8 * 128 + ((word ^ thread / 8) & 7) * 16; // 16 keys on: the same swizzle
        if constexpr (c.cache_type == DType::f8) {
          bring_codes(from, bytes, word, to, codes);
        } else {
#pragma unroll
          for (int j = 0; j < kChunks; ++j)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
              const bool within = j * 64 + 64 <= kWidth || j * 64 + word * 8 < kWidth;
              copy_async16(to + j * kChunkBytes + r * 2048, from[r] + j * 128, within ? bytes[r] : 0);
            }
        }
        barrier_arrive_after_copies(full + tile % 2);
        barrier_arrive(full + tile % 2); // valid is written
      }
    }
    copy_commit(), copy_wait<0>();
  }
};

} // namespace k31::kernels::attend
