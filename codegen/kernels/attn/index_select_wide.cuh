// Scores of attn.index_select for many rows: products of warp groups, keys as rows of A and (row, head) pairs as columns.
//
// A block holds the queries of a group of rows, 512 columns, and meets them with tiles of 128 keys, 64 a warp group. A warp group
// has two sets of sums of 128 columns: while the tensor cores fill one, its threads take relu, weights and the sum over heads of
// the other. Tiles follow each other in two buffers, bf16 by cp.async, codes through registers; the scale of a key multiplies
// the finished score. The tiles of all groups are one list, of which every block takes an equal run.
//
// Floor: 2 heads head_dim operations a score, on the tensor cores: 4096 rows over 131072 positions of 32 x 128 are 4.4 TFLOP, 5.6
// ms at 0.79 PFLOP/s. The other work of a score hides behind it: two instructions for each of 32 heads, 2.3 ms.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/index_select.tile.h"
#include "codegen/kernels/common/fp8.cuh"
#include "codegen/kernels/common/wgmma.cuh"

namespace k31::kernels::index_select {

// Unsigned, of the same order; NaN is the lowest; -0.0 becomes +0.0.
K31_DEVICE uint32_t ordered_score(float v) {
  v += 0.0f;
  return v == v ? ordered_bits(v) : 0;
}

// Rows of one segment, at most Tile::group: [first, first + rows) of the row block.
struct Group {
  int32_t first, rows, segment;
  int32_t begin; // first of its tiles in the list of all groups
};

template <Config c, Tile t> struct Wide {
  static constexpr int kHeads = t.heads(c), kDim = c.head_dim, kThreads = t.threads(), kChunks = kDim / 64;
  static constexpr int kPart = 128, kParts = kWideColumns / kPart, kRows = kPart / kHeads; // columns and rows of a set of sums
  static constexpr int kQueryChunk = kWideColumns * 128, kKeyChunk = kWideKeys * 128, kTileBytes = kChunks * kKeyChunk;
  static constexpr bool kCoded = c.cache_type == DType::i8;
  static constexpr int kWords = kWideKeys * kDim * (kCoded ? 1 : 2) / 16 / kThreads; // 16-byte words of a tile, a thread
  static_assert(kThreads == 256 && kParts == 4 && kRows >= 2 && kRows * kHeads == kPart);

  const Args &args;
  unsigned char *query;  // [chunk, column] rows of 64 values, 128-byte swizzle
  unsigned char *tiles;  // [2, chunk, key] the same
  const float *weights;  // [columns]
  const int32_t *counts; // of row i at 4 i: positions, 0: not scored
  uint32_t *scores;      // [rows, max_context], unsigned of the same order

  K31_DEVICE const char *page(const int32_t *table, int tile) const {
    constexpr int64_t bytes = kCoded ? coded_page_bytes(kDim) : (int64_t)kBlockTokens * kDim * 2;
    return (const char *)args.pages + table[tile / 2] * bytes;
  }
  K31_DEVICE unsigned char *tile_at(int tile) const { return tiles + tile % 2 * kTileBytes; }

  // Queries of the group's rows from row `row` of the entry on; columns of no row or head are zero.
  K31_DEVICE void load_queries(int64_t row, int rows) const {
    const bool vectors = aligned16(args.q) && c.ld_q % 8 == 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < kWideColumns * kDim / 8; i += kThreads) {
      const int column = i / (kDim / 8), word = i % (kDim / 8), r = column / kHeads, h = column % kHeads;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (r < rows && h < c.heads) {
        const uint16_t *from = (const uint16_t *)args.q + (row + r) * c.ld_q + h * kDim + word * 8;
        if (vectors) {
          v = *(const uint4 *)from;
        } else {
          v.x = from[0] | (uint32_t)from[1] << 16, v.y = from[2] | (uint32_t)from[3] << 16;
          v.z = from[4] | (uint32_t)from[5] << 16, v.w = from[6] | (uint32_t)from[7] << 16;
        }
      }
      *(uint4 *)(query + word / 8 * kQueryChunk + column * 128 + ((word ^ column) & 7) * 16) = v;
    }
  }
  K31_DEVICE void load_weights(float *to, int64_t row, int rows) const {
    for (int i = threadIdx.x; i < kWideColumns; i += kThreads) {
      const int r = i / kHeads, h = i % kHeads;
      to[i] = r < rows && h < c.heads ? load<c.w_type>(args.w, (row + r) * c.ld_w + h) * (c.head_scale * c.scale) : 0;
    }
  }

  // ---- keys
  struct Words {
    uint4 word[kWords];
  };
  // Half a page lies in one piece: 128 keys.
  K31_DEVICE void copy_keys(const int32_t *table, int tile) const {
    const char *from = page(table, tile) + tile % 2 * (kWideKeys * kDim * 2);
#pragma unroll
    for (int n = 0; n < kWords; ++n) {
      const int i = n * kThreads + threadIdx.x, key = i / (kDim / 8), word = i % (kDim / 8);
      copy_async16(tile_at(tile) + word / 8 * kKeyChunk + key * 128 + ((word ^ key) & 7) * 16, from + i * 16);
    }
    copy_commit();
  }
  K31_DEVICE void fetch_codes(const int32_t *table, int tile, Words &w) const {
    const char *from = page(table, tile) + tile % 2 * (kWideKeys * kDim);
#pragma unroll
    for (int n = 0; n < kWords; ++n)
      w.word[n] = *(const uint4 *)(from + (n * kThreads + threadIdx.x) * 16);
  }
  K31_DEVICE void store_codes(int tile, const Words &w) const {
#pragma unroll
    for (int n = 0; n < kWords; ++n) {
      const int i = n * kThreads + threadIdx.x, key = i / (kDim / 16), word = i % (kDim / 16) * 2;
      unsigned char *row = tile_at(tile) + word / 8 * kKeyChunk + key * 128;
      *(uint4 *)(row + ((word ^ key) & 7) * 16) = decode_integers(make_uint2(w.word[n].x, w.word[n].y));
      *(uint4 *)(row + (((word + 1) ^ key) & 7) * 16) = decode_integers(make_uint2(w.word[n].z, w.word[n].w));
    }
  }

  // ---- scores
  using Sums = float[kPart / 8][4];
  K31_DEVICE void multiply(uint64_t keys, uint64_t columns, Sums &sums) const {
    wgmma_begin();
#pragma unroll
    for (int j = 0; j < kChunks; ++j)
#pragma unroll
      for (int step = 0; step < 4; ++step)
        wgmma_bf16(sums, keys + j * (kKeyChunk / 16) + step * 2, columns + j * (kQueryChunk / 16) + step * 2, j > 0 || step > 0);
    wgmma_commit();
  }
  // The halves of the first N values move to the lanes whose bit `step` is 0 and 1, each the sum of both lanes.
  template <int N, int M> K31_DEVICE static void halve(float (&v)[M], int step) {
    const bool upper = lane_id() & step;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const float keep = upper ? v[N / 2 + i] : v[i], give = upper ? v[i] : v[N / 2 + i];
      v[i] = keep + __shfl_xor_sync(kAllLanes, give, step);
    }
  }
  // Scores of part `part` of the columns: this thread has keys g and g + 8 of the warp, and two columns of each eight.
  K31_DEVICE void finish(const Sums &sums, int part, const Group &group, int key, const float (&scale)[2]) const {
    const int q = lane_id() % 4;
    const float2 *w = (const float2 *)(weights + part * kPart) + q;
    float total[2 * kRows]; // [row, key]
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float low = 0, high = 0;
#pragma unroll
      for (int j = 0; j < kHeads / 8; ++j) {
        const int n = r * (kHeads / 8) + j;
        const float2 weight = w[n * 4];
        low += max_or_nan(sums[n][0], 0) * weight.x, low += max_or_nan(sums[n][1], 0) * weight.y;
        high += max_or_nan(sums[n][2], 0) * weight.x, high += max_or_nan(sums[n][3], 0) * weight.y;
      }
      total[2 * r] = low, total[2 * r + 1] = high;
    }
    // Over the four lanes: lane q keeps the q-th quarter.
    halve<2 * kRows>(total, 2);
    halve<kRows>(total, 1);
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) {
      const int entry = q * (kRows / 2) + i, row = part * kRows + entry / 2, at = key + entry % 2 * 8;
      const float score = kCoded ? total[i] * (entry % 2 ? scale[1] : scale[0]) : total[i];
      if (row < group.rows && at < counts[4 * (group.first + row)])
        scores[(int64_t)(group.first + row) * c.max_context + at] = ordered_score(score);
    }
  }
  // `meanwhile` runs while the tensor cores have two parts to do.
  template <class F> K31_DEVICE void score_tile(const Group &group, const int32_t *table, int tile, F meanwhile) const {
    const int warps = threadIdx.x / 128, first = warps * 64 + threadIdx.x / 32 % 4 * 16 + lane_id() / 4; // key of the tile
    const uint64_t keys = matrix_descriptor(tile_at(tile) + warps * 64 * 128), columns = matrix_descriptor(query);
    constexpr uint64_t kNext = kPart * 128 / 16;
    float scale[2] = {1, 1};
    if constexpr (kCoded) {
      const float *scales = (const float *)(page(table, tile) + kBlockTokens * kDim) + tile % 2 * kWideKeys + first;
      scale[0] = scales[0], scale[1] = scales[8];
    }
    const int key = tile * kWideKeys + first;
    Sums even, odd;
    multiply(keys, columns, even);
    multiply(keys, columns + kNext, odd);
    wgmma_wait<1>();
    finish(even, 0, group, key, scale);
    multiply(keys, columns + 2 * kNext, even);
    wgmma_wait<1>();
    finish(odd, 1, group, key, scale);
    multiply(keys, columns + 3 * kNext, odd);
    meanwhile();
    wgmma_wait<1>();
    finish(even, 2, group, key, scale);
    wgmma_wait<0>();
    finish(odd, 3, group, key, scale);
  }
  // Tiles [begin, end) of a group whose rows begin at row `row` of the entry.
  K31_DEVICE void score(const Group &group, int64_t row, int begin, int end, float *to_weights) const {
    const int32_t *table = args.batch.block_table + (int64_t)group.segment * c.blocks;
    Words words;
    __syncthreads(); // the queries before are of no use any more
    auto begin_loads = [&](int tile) {
      if constexpr (kCoded)
        fetch_codes(table, tile, words);
      else
        copy_keys(table, tile);
    };
    auto end_loads = [&](int tile) {
      if constexpr (kCoded)
        store_codes(tile, words);
      else
        copy_wait<0>();
      fence_async_proxy(); // waits for this thread's stores of scores too
    };
    begin_loads(begin);
    load_queries(row, group.rows);
    load_weights(to_weights, row, group.rows);
    end_loads(begin);
#pragma unroll 1
    for (int tile = begin; tile < end; ++tile) {
      __syncthreads(); // the tile is there, and all have left the one before, whose buffer is filled next
      if (tile + 1 < end)
        begin_loads(tile + 1);
      score_tile(group, table, tile, [&] {
        if (tile + 1 < end)
          end_loads(tile + 1);
      });
    }
  }
};

} // namespace k31::kernels::index_select
