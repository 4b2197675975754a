// Products of few rows of x with MXFP4 weights: the thin form of common/, with W decoded in registers.
//
// A lane's 16 bytes of codes are the 32 columns of one scale; 128 columns a turn of a warp and row; several turns' codes are on
// their way to shared memory, since memory is far and a turn is short. x's pairs are put into the order that decoding gives (0 4
// 1 5 2 6 3 7 of each 8 columns). More rows of x: moe/decoded.cuh.
#pragma once
#include "codegen/kernels/common/mxfp4.cuh"
#include "codegen/kernels/common/thin.cuh"

namespace k31::kernels::packed {

struct Weights {
  const uint8_t *codes; // [n, k / 2]
  const uint8_t *scale; // [n, k / 32]
};

constexpr int kTurn = 128; // columns of one turn

// What a warp is going to decode, a slot a turn, `stages` turns ahead. A lane copies the codes that it decodes itself; the four
// scales of a row come together. So nothing but the warp itself waits for a slot. Turns are `stride` columns apart.
// Addresses go on by sums, as a turn is short. block_rows: of W, that the warps of a block have together, so that one of them may
// have rows past n_rows where that is no multiple.
template <ProductTile t, int32_t n_rows, int32_t k, int32_t stride, int32_t block_rows = t.bn> struct Ring {
  static constexpr int kN = t.bn / 16, kCodes = kN * 1024, kSlot = thin_slot_bytes(t.bn), kEnd = t.stages * kSlot;
  static constexpr bool kWholeRows = n_rows % block_rows == 0, kWholeTurns = k % kTurn == 0;
  unsigned char *slots;         // of this warp
  const uint8_t *codes, *scale; // of this lane: row n0 + g, word q of the next turn to start; row of scales `lane`
  int32_t row, scale_row;       // of those
  int32_t col = k;              // of the next turn to start
  int32_t write = 0, read = 0;  // offsets of slots

  K31_DEVICE explicit Ring(unsigned char *slots) : slots(slots) {}

  // Turns from column k0 on of the rows from n0 on are the next to start.
  K31_DEVICE void aim(const Weights &w, int32_t n0, int32_t k0) {
    row = n0 + lane_id() / 4, scale_row = n0 + lane_id(), col = k0;
    codes = w.codes + (int64_t)row * (k / 2) + k0 / 2 + lane_id() % 4 * kCodeBytes;
    scale = w.scale + (int64_t)scale_row * (k / kScaleColumns) + k0 / kScaleColumns;
  }

  // The next turn's copies, as a group; none past the end of K.
  K31_DEVICE void start() {
    if (col < k) {
      unsigned char *to = slots + write;
      const bool within = kWholeTurns || col + lane_id() % 4 * kScaleColumns < k;
#pragma unroll
      for (int i = 0; i < kN; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int32_t behind = i * 16 + half * 8;
          const bool there = within && (kWholeRows || row + behind < n_rows);
          copy_async16(to + ((i * 2 + half) * 32 + lane_id()) * 16, there ? codes + behind * (k / 2) : codes, there ? 16 : 0);
        }
      }
#pragma unroll
      for (int r = 0; r < t.bn; r += 32) {
        if (t.bn - r < 32 && lane_id() >= t.bn - r)
          continue;
        const bool there = kWholeRows || scale_row + r < n_rows;
        unsigned char *at = to + kCodes + (r + lane_id()) * 4;
        const uint8_t *from = scale + r * (k / kScaleColumns);
        if constexpr (kWholeTurns) {
          copy_async4(at, there ? from : scale, there ? 4 : 0);
        } else {
#pragma unroll
          for (int j = 0; j < 4; ++j)
            at[j] = col + j * kScaleColumns < k && there ? from[j] : 0;
        }
      }
    }
    codes += stride / 2, scale += stride / kScaleColumns, col += stride;
    write = write + kSlot == kEnd ? 0 : write + kSlot;
    copy_commit();
  }
  // The oldest turn goes to registers; its slot is free then.
  template <class To> K31_DEVICE void take(To &turn) {
    copy_wait<t.stages - 1>();
    __syncwarp();
    turn.take(slots + read);
    read = read + kSlot == kEnd ? 0 : read + kSlot;
    __syncwarp(); // the slot has been read
  }
};

template <ProductTile t, int32_t ld_x> struct RowsOfX {
  static constexpr int kM = t.bm / 8;
  uint4 x[kM][4];

  K31_DEVICE void load(const uint16_t *xs, int32_t rows, int32_t k0, int32_t k) {
    const int g = lane_id() / 4, col = k0 + lane_id() % 4 * kScaleColumns;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int word = 0; word < 4; ++word)
        x[m][word] = thin::load_or_zero(xs + (int64_t)(m * 8 + g) * ld_x + col + word * 8, m * 8 + g < rows && col < k);
    }
  }
};

template <ProductTile t> struct Turn {
  static constexpr int kM = t.bm / 8, kN = t.bn / 16;
  uint4 codes[kN][2];
  uint32_t factor[kN][2];

  K31_DEVICE void take(const unsigned char *slot) {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        codes[i][half] = *(const uint4 *)(slot + ((i * 2 + half) * 32 + lane_id()) * 16);
        factor[i][half] = scale_pair(slot[kN * 1024 + (i * 16 + half * 8) * 4 + lane_id()]); // row g, column q of 4
      }
    }
  }
  K31_DEVICE void multiply(const uint4 (&x)[kM][4], float (&sum)[kN][kM][4]) const {
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      uint32_t b[kM][4];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        order_as_decoded(x[m][word], b[m]);
      }
#pragma unroll
      for (int i = 0; i < kN; ++i) {
        uint32_t low[4], high[4];
        decode_word(word_of(codes[i][0], word), factor[i][0], low);
        decode_word(word_of(codes[i][1], word), factor[i][1], high);
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          mma_bf16(sum[i][m], low[0], high[0], low[1], high[1], b[m][0], b[m][1]);
          mma_bf16(sum[i][m], low[2], high[2], low[3], high[3], b[m][2], b[m][3]);
        }
      }
    }
  }
  static K31_DEVICE uint32_t word_of(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
};

template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair, class Finish>
K31_DEVICE void thin_tile(const uint16_t *x, int32_t rows, const Weights &w, int32_t n0, const Finish &finish) {
  static_assert(k % kScaleColumns == 0, "whole scales");
  constexpr int32_t kStride = t.block / 32 * kTurn;
  using R = Ring<t, n_rows, k, kStride>;
  const int32_t first = warp_id() * kTurn;
  R ring(shared_memory() + warp_id() * R::kEnd);
  ring.aim(w, n0, first);
  float sum[Turn<t>::kN][Turn<t>::kM][4] = {};
  for (int32_t turn = 0; turn < t.stages; ++turn)
    ring.start();
  RowsOfX<t, ld_x> now, next;
  now.load(x, rows, first, k);
  for (int32_t k0 = first; k0 < k; k0 += kStride) {
    next.load(x, rows, k0 + kStride, k);
    Turn<t> w_turn;
    ring.take(w_turn);
    ring.start();
    w_turn.multiply(now.x, sum);
    now = next;
  }
  copy_wait<0>();
  __syncthreads(); // the sums take the place of the slots
  thin::finish_tile<t, n_rows, pair>(sum, rows, n0, [&](int32_t row, int32_t col, float first_sum, float second) {
    finish(row, col, first_sum * kUnscale, second * kUnscale);
  });
}

} // namespace k31::kernels::packed
