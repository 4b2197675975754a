// Products with MXFP4 weights for more rows of x than the thin form takes: two warp groups multiply 128 rows of W each, decoded
// in their registers, by bm rows of x in shared memory (wgmma with W on the left, so that a weight goes from memory to the tensor
// cores without being written anywhere). Two more take turns at bringing x. While one group decodes, the other one's products
// run.
//
// K goes by turns of 128 columns. Of a turn a lane decodes 32 columns of a row, so the order of columns that the tensor cores see
// is the one in which lanes hold them: step s of 16 columns has of lane q the pairs 2 s % 4 and the next of its word s / 2 (pairs
// as decode_word makes them). x is stored in that order.
#pragma once
#include "codegen/kernels/common/mbarrier.cuh"
#include "codegen/kernels/common/wgmma.cuh"
#include "codegen/kernels/common/wide.cuh"
#include "codegen/kernels/moe/packed.cuh"

namespace k31::kernels::packed {

template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair> struct Decoded {
  static constexpr int kConsumers = 256, kProducers = 256, kBringers = 128, kWarps = kConsumers / 32;
  static constexpr int kTurns = (int)ceil_div(k, kTurn), kParts = t.bm / 32;
  static constexpr int kChunk = t.bm * 128, kStage = 2 * kChunk; // bytes of 64 columns, and of a turn, of x
  static constexpr ProductTile kOfWarp = [] {                    // what a warp decodes: 32 rows of W
    ProductTile own;
    own.bm = 8, own.bn = 32, own.stages = kDecodedTurns;
    return own;
  }();
  static_assert(t.block == kConsumers + kProducers && t.bn == kWarps * 32 && t.bm % 32 == 0 && k % kScaleColumns == 0);
  using Codes = Ring<kOfWarp, n_rows, k, kTurn, t.bn>;
  static constexpr int kCodes = kWarps * Codes::kEnd;

  unsigned char *x, *codes; // [stages, chunk, row] rows of 64 columns; [warp, turn] slots
  Barrier *full, *empty;    // [stages]

  K31_DEVICE Decoded() : x(wide::aligned_shared()) {
    codes = x + t.stages * kStage;
    full = (Barrier *)(codes + kCodes), empty = full + t.stages;
    if (threadIdx.x == 0) {
      for (int s = 0; s < t.stages; ++s)
        barrier_init(full + s, kBringers), barrier_init(empty + s, kWarps);
      barrier_init_done();
    }
    __syncthreads();
  }

  // Rows first, first + step, ... of x, bm each, of which `rows` are there; rows past those and columns past k are zeros. A
  // thread has 32 columns of a row of each part.
  K31_DEVICE void produce(const uint16_t *from, int32_t rows, int32_t first, int32_t step) const {
    const int thread = threadIdx.x % kBringers, q = thread % 4, of_part = thread / 4;
    const uint32_t mine = threadIdx.x / kBringers % 2;
    uint32_t turn = 0; // so far
    for (int32_t row0 = first; row0 < rows; row0 += step)
      for (int32_t k0 = q * kScaleColumns; k0 < k + q * kScaleColumns; k0 += kTurn, ++turn) {
        if (turn % 2 != mine)
          continue;
        uint4 v[kParts][4];
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const int32_t row = row0 + part * 32 + of_part;
#pragma unroll
          for (int i = 0; i < 4; ++i)
            v[part][i] = thin::load_or_zero(from + (int64_t)row * ld_x + k0 + i * 8, row < rows && k0 < k);
        }
        barrier_wait(empty + turn % t.stages, turn / t.stages % 2 ^ 1);
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          store(x + turn % t.stages * kStage, part * 32 + of_part, q, v[part]);
        fence_async_proxy();
        barrier_arrive(full + turn % t.stages);
      }
  }

  // finish(row of x, output column, sum, second sum).
  template <class Finish>
  K31_DEVICE void consume(const Weights &w, int32_t n0, int32_t rows, int32_t first, int32_t step, const Finish &finish) const {
    const int32_t of_warp = n0 + warp_id() * 32;
    uint32_t turn = 0;
    for (int32_t row0 = first; row0 < rows; row0 += step) {
      Codes ring(codes + warp_id() * Codes::kEnd, w, of_warp, 0);
      ring.fill();
      float sum[2][t.bm / 8][4];
      uint32_t a[4][2][2][4]; // words, their steps, 16 rows each
#pragma unroll 1
      for (int now = 0; now < kTurns; ++now, ++turn) {
        Turn<kOfWarp> of_w;
        ring.take(of_w);
        barrier_wait(full + turn % t.stages, turn / t.stages % 2);
        const unsigned char *stage = x + turn % t.stages * kStage;
#pragma unroll
        for (int word = 0; word < 4; ++word) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            uint32_t low[4], high[4];
            decode_word(of_w.word_of(of_w.codes[i][0], word), of_w.factor[i][0], low);
            decode_word(of_w.word_of(of_w.codes[i][1], word), of_w.factor[i][1], high);
#pragma unroll
            for (int s = 0; s < 2; ++s)
              a[word][s][i][0] = low[2 * s], a[word][s][i][1] = high[2 * s], a[word][s][i][2] = low[2 * s + 1],
              a[word][s][i][3] = high[2 * s + 1];
          }
          wgmma_begin();
#pragma unroll
          for (int s = 0; s < 2; ++s) {
            const uint64_t of_x = matrix_descriptor(stage + word / 2 * kChunk) + (word * 2 + s) % 4 * 2;
#pragma unroll
            for (int i = 0; i < 2; ++i)
              wgmma_bf16(sum[i], a[word][s][i], of_x, now > 0 || word > 0 || s > 0);
          }
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
      uint32_t pairs[4];
      order_as_decoded(v[i], pairs);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        *(uint32_t *)(wide::word_at(to + i / 2 * kChunk, row, (i * 4 + j) % 8) + q * 4) = pairs[j];
    }
  }

  // A lane has of each 8 rows of x two, and of each 16 rows of W two. The second 16 are the other sums of pairs.
  template <class Finish>
  K31_DEVICE static void finish_rows(const float (&sum)[2][t.bm / 8][4], int32_t at, int32_t row0, int32_t rows,
                                     const Finish &finish) {
#pragma unroll
    for (int j = 0; j < t.bm / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int32_t row = row0 + j * 8 + lane_id() % 4 * 2 + e;
        if (row >= rows)
          continue;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int32_t n = at + half * 8;
          const float low = sum[0][j][half * 2 + e] * kUnscale, high = sum[1][j][half * 2 + e] * kUnscale;
          if (pair && n < n_rows)
            finish(row, n / 32 * 16 + n % 16, low, high);
          if (!pair && n < n_rows)
            finish(row, n, low, 0.0f);
          if (!pair && n + 16 < n_rows)
            finish(row, n + 16, high, 0.0f);
        }
      }
    }
  }
};

// Rows first, first + step, ... (bm each) of an expert's `rows` rows of x, by rows n0 .. n0 + bn of its W.
template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair, class Finish>
K31_DEVICE void decoded_tiles(const uint16_t *x, int32_t rows, int32_t first, int32_t step, const Weights &w, int32_t n0,
                              const Finish &finish) {
  const Decoded<t, n_rows, k, ld_x, pair> all;
  if (threadIdx.x >= all.kConsumers) {
    fewer_registers<88>();
    all.produce(x, rows, first, step);
  } else {
    more_registers<168>();
    all.consume(w, n0, rows, first, step, finish);
  }
}

} // namespace k31::kernels::packed
