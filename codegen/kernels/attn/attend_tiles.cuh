// The keys of attn.attend's products: producers bring tiles of 64 keys, dense or gathered, into shared memory in chunks of 64
// columns (128-byte swizzle), one tile ahead of the products: bf16 by cp.async, a warp group; codes through registers, where
// they become bf16, exactly, two warp groups.
#pragma once
#include "codegen/kernels/attn/attend.tile.h"
#include "codegen/kernels/attn/attend_unit.cuh"
#include "codegen/kernels/common/mbarrier.cuh"

namespace k31::kernels::attend {

template <Config c, Tile t> struct Tiles {
  static constexpr int kGroup = t.group(c), kKeys = 64, kChunks = t.chunks(c);
  static constexpr int kWidth = c.latent + c.shared, kLatentChunks = c.latent / 64;
  static constexpr int kChunkBytes = kKeys * 128, kTileBytes = kChunks * kChunkBytes;
  static constexpr bool kCodes = c.cache_type == DType::f8;
  static constexpr int kConsumers = 256, kProducers = kCodes ? 256 : 128;
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
  // Four threads have a key, each 16 codes of every chunk, which take a whole tile's time to come: they are loaded while the tile
  // before them is multiplied. In a tile's row of 128 bytes they become two words of 16; two keys side by side fill all banks.
  struct Codes {
    uint4 code[kLatentChunks];
    uint32_t scale; // of the thread's 128 columns; those of a chunk come from another thread of the key
    K31_DEVICE void load(const char *row, int quarter) {
      scale = *(const uint32_t *)(row + row_scales_at(c.latent) + quarter * 4);
#pragma unroll
      for (int j = 0; j < kLatentChunks; ++j)
        code[j] = *(const uint4 *)(row + j * 64 + quarter * 16);
    }
    K31_DEVICE void store(bool counts, unsigned char *first, unsigned char *second) const {
      const uint32_t mine = counts ? code_factor(scale) : 0; // any code times 0 is 0
#pragma unroll
      for (int j = 0; j < kLatentChunks; ++j) {
        const uint32_t factor = __shfl_sync(kAllLanes, mine, j * 64 / kRowScaleCodes, 4);
        *(uint4 *)(first + j * kChunkBytes) = decode_codes(make_uint2(code[j].x, code[j].y), factor);
        *(uint4 *)(second + j * kChunkBytes) = decode_codes(make_uint2(code[j].z, code[j].w), factor);
      }
    }
  };
  K31_DEVICE void produce_codes(const Shares<c, t, kGroup> &shares) const {
    static_assert(!kCodes || (c.latent == 4 * kRowScaleCodes && kProducers == 4 * kKeys));
    const int thread = threadIdx.x - kConsumers, key = thread / 4, quarter = thread % 4;
    const int at = key * 128 + ((quarter * 2 ^ key) & 7) * 16;
    uint32_t tile = 0; // so far
    Unit u;
    for (int i = 0; shares.unit(i, u); ++i) {
      const Keys keys = keys_of<c>(args, u.row);
      const auto position = [&](int64_t first) { return first + key < u.end ? (int32_t)keys.position(first + key) : -1; };
      const auto row = [&](int32_t position) { return position < 0 ? -1 : (int32_t)cache_row(keys.table, (uint32_t)position); };
      // Loads need no branch: for a key that does not count the pool's first row is read, and multiplied by 0.
      const auto row_at = [&](int32_t row) { return (const char *)args.pages + (int64_t)(row < 0 ? 0 : row) * c.row_bytes(); };
      int32_t now = row(position(u.first)), next = position(u.first + kKeys);
      Codes codes;
      const char *from = row_at(now);
      codes.load(from, quarter);
      next = row(next);
      int32_t later = position(u.first + 2 * kKeys);
      for (int64_t first = u.first; first < u.end; first += kKeys, ++tile) {
        barrier_wait(empty + tile % 2, tile / 2 % 2 ^ 1);
        unsigned char *to = tile_at(tile) + at, *beside = tile_at(tile) + (at ^ 16);
        if (quarter == 0)
          valid[tile % 2 * kKeys + key] = now < 0 ? minus_infinity() : 0;
        if constexpr (c.shared > 0) {
          const char *rest = from + row_rest_at(c.latent) + quarter * 32;
          copy_async16(to + kLatentChunks * kChunkBytes, rest, quarter * 16 < c.shared && now >= 0 ? 16 : 0);
          copy_async16(beside + kLatentChunks * kChunkBytes, rest + 16, quarter * 16 + 8 < c.shared && now >= 0 ? 16 : 0);
        }
        codes.store(now >= 0, to, beside);
        fence_async_proxy();
        barrier_arrive_after_copies(full + tile % 2);
        barrier_arrive(full + tile % 2); // valid and codes are written
        from = row_at(next);
        codes.load(from, quarter);
        now = next, next = row(later), later = position(first + 3 * kKeys);
      }
    }
    copy_commit(), copy_wait<0>();
  }
  K31_DEVICE void produce_values(const Shares<c, t, kGroup> &shares) const {
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
          from[r] = (const char *)args.pages + (int64_t)(rows[r] < 0 ? 0 : rows[r]) * c.row_bytes() + word * 16;
        }
        find_rows(keys, positions, rows);
        find_positions(keys, first + 2 * kKeys, u.end, thread, positions);
        barrier_wait(empty + tile % 2, tile / 2 % 2 ^ 1);
        if (word == 0) {
#pragma unroll
          for (int r = 0; r < 4; ++r)
            valid[tile % 2 * kKeys + thread / 8 + 16 * r] = bytes[r] ? 0 : minus_infinity();
        }
        unsigned char *to = tile_at(tile) + thread / 8 * 128 + ((word ^ thread / 8) & 7) * 16; // 16 keys on: the same swizzle
#pragma unroll
        for (int j = 0; j < kChunks; ++j)
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const bool within = j * 64 + 64 <= kWidth || j * 64 + word * 8 < kWidth;
            copy_async16(to + j * kChunkBytes + r * 2048, from[r] + j * 128, within ? bytes[r] : 0);
          }
        barrier_arrive_after_copies(full + tile % 2);
        barrier_arrive(full + tile % 2); // valid is written
      }
    }
    copy_commit(), copy_wait<0>();
  }
  K31_DEVICE void produce(const Shares<c, t, kGroup> &shares) const {
    if constexpr (kCodes)
      produce_codes(shares);
    else
      produce_values(shares);
  }
};

} // namespace k31::kernels::attend
