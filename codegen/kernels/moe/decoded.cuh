// Products with MXFP4 weights for more rows of x than the thin form takes: warp groups multiply 64 rows of W each, decoded in
// their registers, by bm rows of x in shared memory (wgmma with W on the left, so that a weight goes from memory to the tensor
// cores without being written anywhere). The last warp group only brings x. While one group decodes, another one's products run.
//
// K goes by turns of 128 columns. Of a turn a lane decodes 32 columns of a row, so the order of columns that the tensor cores see
// is the one in which lanes hold them: step s of 16 columns has of lane q the pairs 2 s % 4 and the next of its word s / 2 (pairs
// as decode_word makes them). x is stored in that order.
#pragma once
#include "codegen/kernels/common/mbarrier.cuh"
#include "codegen/kernels/common/wgmma.cuh"
#include "codegen/kernels/moe/packed.cuh"

namespace k31::kernels::packed {

template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair> struct Decoded {
  static constexpr int kProducers = 128, kConsumers = t.block - kProducers, kWarps = kConsumers / 32;
  static constexpr int kTurns = (int)ceil_div(k, kTurn), kParts = t.bm / 32;
  static constexpr int kChunk = t.bm * 128, kStage = 2 * kChunk; // bytes of 64 columns, and of a turn, of x
  static constexpr ProductTile kOfWarp = [] {                    // what a warp decodes: 16 rows of W
    ProductTile own;
    own.bm = 8, own.bn = 16, own.stages = kDecodedTurns;
    return own;
  }();
  static_assert(t.bn == kWarps * 16 && t.bm % 32 == 0 && k % kScaleColumns == 0 && (!pair || t.bn % 32 == 0));
  // The two halves of a lane's rows are both sums of a pair, where there are pairs.
  using Codes = Ring<kOfWarp, n_rows, k, pair ? 16 : 8>;
  static constexpr int kCodes = kWarps * kDecodedTurns * Codes::kSlot;

  unsigned char *x, *codes; // [stages, chunk, row] rows of 64 columns; [warp, turn] slots
  Barrier *full, *empty;    // [stages]

  K31_DEVICE Decoded() : x(wide::aligned_shared()) {
    codes = x + t.stages * kStage;
    full = (Barrier *)(codes + kCodes), empty = full + t.stages;
    if (threadIdx.x == 0) {
      for (int s = 0; s < t.stages; ++s)
        barrier_init(full + s, kProducers), barrier_init(empty + s, kWarps);
      barrier_init_done();
    }
    __syncthreads();
  }

  // 32 columns from k0 on of this thread's row of a part; rows past `rows` and columns past k are zeros.
  K31_DEVICE static void load(const uint16_t *from, int32_t row, int32_t rows, int32_t k0, uint4 (&v)[4]) {
    const uint16_t *at = from + (int64_t)row * ld_x + k0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v[i] = thin::load_or_zero(at + i * 8, row < rows && k0 < k);
  }
  // Rows first, first + step, ... of x, bm each, of which `rows` are there. Loads are a part of 32 rows ahead.
  K31_DEVICE void produce(const uint16_t *from, int32_t rows, int32_t first, int32_t step) const {
    const int thread = threadIdx.x - kConsumers, q = thread % 4, of_part = thread / 4;
    uint32_t turn = 0; // so far
    uint4 now[4], next[4];
    load(from, first + of_part, rows, q * kScaleColumns, now);
    for (int32_t row0 = first; row0 < rows; row0 += step)
      for (int32_t k0 = 0; k0 < k; k0 += kTurn, ++turn) {
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const bool last_part = part + 1 == kParts, last_turn = last_part && k0 + kTurn >= k;
          load(from,
               row0 + of_part +
                   (last_turn   ? step
                    : last_part ? 0
                                : (part + 1) * 32),
               rows,
               (last_turn   ? 0
                : last_part ? k0 + kTurn
                            : k0) +
                   q * kScaleColumns,
               next);
          if (part == 0)
            barrier_wait(empty + turn % t.stages, turn / t.stages % 2 ^ 1);
          store(x + turn % t.stages * kStage, part * 32 + of_part, q, now);
#pragma unroll
          for (int i = 0; i < 4; ++i)
            now[i] = next[i];
        }
        fence_async_proxy();
        barrier_arrive(full + turn % t.stages);
      }
  }

  // finish(row of x, output column, sum, second sum).
  template <class Finish>
  K31_DEVICE void consume(const Weights &w, int32_t n0, int32_t rows, int32_t first, int32_t step, const Finish &finish) const {
    const int32_t of_warp = n0 + (pair ? warp_id() / 2 * 32 + warp_id() % 2 * 8 : warp_id() * 16);
    const Codes ring{codes + warp_id() * kDecodedTurns * Codes::kSlot, w, of_warp};
    uint32_t turn = 0;
    for (int32_t row0 = first; row0 < rows; row0 += step) {
      for (int i = 0; i < kDecodedTurns; ++i) {
        if (i < kTurns)
          ring.start(i, i * kTurn);
        copy_commit();
      }
      float sum[t.bm / 8][4];
      uint32_t a[4][2][4]; // words, their steps
#pragma unroll 1
      for (int now = 0; now < kTurns; ++now, ++turn) {
        copy_wait<kDecodedTurns - 1>();
        __syncwarp();
        Turn<kOfWarp> of_w;
        of_w.take(ring, now);
        __syncwarp(); // the slot has been read
        if (now + kDecodedTurns < kTurns)
          ring.start(now + kDecodedTurns, (now + kDecodedTurns) * kTurn);
        copy_commit();
        barrier_wait(full + turn % t.stages, turn / t.stages % 2);
        const unsigned char *stage = x + turn % t.stages * kStage;
#pragma unroll
        for (int word = 0; word < 4; ++word) {
          uint32_t low[4], high[4];
          decode_word(of_w.word_of(of_w.codes[0][0], word), of_w.factor[0][0], low);
          decode_word(of_w.word_of(of_w.codes[0][1], word), of_w.factor[0][1], high);
#pragma unroll
          for (int s = 0; s < 2; ++s)
            a[word][s][0] = low[2 * s], a[word][s][1] = high[2 * s], a[word][s][2] = low[2 * s + 1],
            a[word][s][3] = high[2 * s + 1];
          wgmma_begin();
#pragma unroll
          for (int s = 0; s < 2; ++s)
            wgmma_bf16(sum, a[word][s], matrix_descriptor(stage + word / 2 * kChunk) + (word * 2 + s) % 4 * 2,
                       now > 0 || word > 0 || s > 0);
          wgmma_commit();
        }
        wgmma_wait<0>(); // the compiler serializes products whose registers are written while others run
        __syncwarp();
        if (lane_id() == 0)
          barrier_arrive(empty + turn % t.stages);
      }
      copy_wait<0>();
      finish_rows(sum, of_warp + lane_id() / 4, row0, rows, finish);
    }
  }

private:
  // A thread for each row of 128 bytes and 32 columns: eight columns are four pairs, of two steps.
  K31_DEVICE static void store(unsigned char *to, int row, int q, const uint4 (&v)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t pairs[4] = {__byte_perm(v[i].x, v[i].z, 0x5410), __byte_perm(v[i].x, v[i].z, 0x7632),
                                 __byte_perm(v[i].y, v[i].w, 0x5410), __byte_perm(v[i].y, v[i].w, 0x7632)};
#pragma unroll
      for (int j = 0; j < 4; ++j)
        *(uint32_t *)(wide::word_at(to + i / 2 * kChunk, row, (i * 4 + j) % 8) + q * 4) = pairs[j];
    }
  }

  // A lane has of each 8 rows of x two, and two rows of W.
  template <class Finish>
  K31_DEVICE static void finish_rows(const float (&sum)[t.bm / 8][4], int32_t at, int32_t row0, int32_t rows,
                                     const Finish &finish) {
#pragma unroll
    for (int j = 0; j < t.bm / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int32_t row = row0 + j * 8 + lane_id() % 4 * 2 + e;
        const float low = sum[j][e] * kUnscale, high = sum[j][2 + e] * kUnscale;
        if (row >= rows)
          continue;
        if (pair && at < n_rows)
          finish(row, at / 32 * 16 + at % 16, low, high);
        if (!pair && at < n_rows)
          finish(row, at, low, 0.0f);
        if (!pair && at + 8 < n_rows)
          finish(row, at + 8, high, 0.0f);
      }
    }
  }
};

// Rows first, first + step, ... (bm each) of an expert's `rows` rows of x, by rows n0 .. n0 + bn of its W.
template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair, class Finish>
K31_DEVICE void decoded_tiles(const uint16_t *x, int32_t rows, int32_t first, int32_t step, const Weights &w, int32_t n0,
                              const Finish &finish) {
  const Decoded<t, n_rows, k, ld_x, pair> all;
  if (threadIdx.x >= all.kConsumers)
    all.produce(x, rows, first, step);
  else
    all.consume(w, n0, rows, first, step, finish);
}

} // namespace k31::kernels::packed
