// Products with MXFP4 weights on the tensor cores: the thin and the wide form of common/, with W decoded in registers.
//
// Thin: a lane's 16 bytes of codes are the 32 columns of one scale; 128 columns a turn of a warp and row; several turns' codes
// are on their way to shared memory, since memory is far and a turn is short. x's pairs are put into the order that decoding
// gives (0 4 1 5 2 6 3 7 of each 8 columns). Wide: a thread decodes 32 columns of one row of W a stage, in their own order, into
// shared memory; its codes and scale were read two stages before. Each weight is decoded once for bm rows of x.
#pragma once
#include "codegen/kernels/common/mxfp4.cuh"
#include "codegen/kernels/common/thin.cuh"
#include "codegen/kernels/common/wide.cuh"

namespace k31::kernels::packed {

struct Weights {
  const uint8_t *codes; // [n, k / 2]
  const uint8_t *scale; // [n, k / 32]
};

constexpr int kTurn = 128; // columns of one turn

// What a warp is going to decode, a slot a turn, `stages` turns ahead. A lane copies the codes that it decodes itself; the four
// scales of a row come together. So nothing but the warp itself waits for a slot.
template <ProductTile t, int32_t n_rows, int32_t k, int32_t half_rows = 8> struct Ring {
  static constexpr int kN = t.bn / 16, kCodes = kN * 1024, kSlot = thin_slot_bytes(t.bn);
  unsigned char *slots; // of this warp
  Weights w;
  int32_t n0; // each 16 rows are eight from n0 + 16 i on and eight half_rows behind those

  K31_DEVICE unsigned char *slot(int32_t turn) const { return slots + turn % t.stages * kSlot; }
  K31_DEVICE unsigned char *codes(int32_t turn, int i, int half) const {
    return slot(turn) + ((i * 2 + half) * 32 + lane_id()) * 16;
  }
  K31_DEVICE void start(int32_t turn, int32_t k0) const {
    const int g = lane_id() / 4, col = k0 + lane_id() % 4 * kScaleColumns;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t row = n0 + i * 16 + half * half_rows + g;
        const bool there = col < k && row < n_rows;
        copy_async16(codes(turn, i, half), there ? w.codes + row * (k / 2) + col / 2 : w.codes, there ? 16 : 0);
      }
    }
#pragma unroll
    for (int r = lane_id(); r < t.bn; r += 32) {
      const int64_t row = n0 + r / 16 * 16 + r / 8 % 2 * half_rows + r % 8;
      unsigned char *to = slot(turn) + kCodes + r * 4;
      const uint8_t *from = w.scale + row * (k / kScaleColumns) + k0 / kScaleColumns;
      if constexpr (k % kTurn == 0) {
        const bool there = k0 < k && row < n_rows;
        copy_async4(to, there ? from : w.scale, there ? 4 : 0);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          to[j] = k0 + j * kScaleColumns < k && row < n_rows ? from[j] : 0;
      }
    }
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

  template <class R> K31_DEVICE void take(const R &ring, int32_t turn) {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        codes[i][half] = *(const uint4 *)ring.codes(turn, i, half);
        factor[i][half] = scale_pair(ring.slot(turn)[R::kCodes + (i * 16 + half * 8) * 4 + lane_id()]); // row g, column q of 4
      }
    }
  }
  K31_DEVICE void multiply(const uint4 (&x)[kM][4], float (&sum)[kN][kM][4]) const {
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      uint32_t b[kM][4];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        const uint4 v = x[m][word];
        b[m][0] = __byte_perm(v.x, v.z, 0x5410), b[m][1] = __byte_perm(v.x, v.z, 0x7632);
        b[m][2] = __byte_perm(v.y, v.w, 0x5410), b[m][3] = __byte_perm(v.y, v.w, 0x7632);
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
  using R = Ring<t, n_rows, k>;
  const R ring{shared_memory() + warp_id() * t.stages * R::kSlot, w, n0};
  float sum[Turn<t>::kN][Turn<t>::kM][4] = {};
  const int32_t first = warp_id() * kTurn;
  for (int32_t turn = 0; turn < t.stages; ++turn) {
    if (first + turn * kStride < k)
      ring.start(turn, first + turn * kStride);
    copy_commit();
  }
  RowsOfX<t, ld_x> now, next;
  now.load(x, rows, first, k);
  for (int32_t turn = 0, k0 = first; k0 < k; ++turn, k0 += kStride) {
    next.load(x, rows, k0 + kStride, k);
    copy_wait<t.stages - 1>();
    __syncwarp();
    Turn<t> w_turn;
    w_turn.take(ring, turn);
    __syncwarp(); // the slot has been read
    if (k0 + t.stages * kStride < k)
      ring.start(turn + t.stages, k0 + t.stages * kStride);
    copy_commit();
    w_turn.multiply(now.x, sum);
    now = next;
  }
  copy_wait<0>();
  __syncthreads(); // the sums take the place of the slots
  thin::finish_tile<t, n_rows, pair>(sum, rows, n0, [&](int32_t row, int32_t col, float first_sum, float second) {
    finish(row, col, first_sum * kUnscale, second * kUnscale);
  });
}

// What a thread decodes in one stage: columns k0 + half * 32 .. + 32 of row n0 + row.
template <ProductTile t, int32_t n_rows, int32_t k> struct Part {
  uint4 codes;
  uint32_t scale;

  K31_DEVICE static int row() { return threadIdx.x / 2; }
  K31_DEVICE static int half() { return threadIdx.x % 2; }
  K31_DEVICE void load(const Weights &w, int32_t n0, int32_t k0) {
    int64_t at = n0 + row();
    int32_t col = k0 + half() * kScaleColumns;
    bool there = at < n_rows && col < k;
    codes = there ? load_streamed(w.codes + at * (k / 2) + col / 2) : make_uint4(0, 0, 0, 0);
    scale = there ? w.scale[at * (k / kScaleColumns) + col / kScaleColumns] : 127;
  }
  K31_DEVICE void decode(unsigned char *tile) const {
    const uint32_t factor = scale_pair(scale), words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t p[4];
      decode_word(words[i], factor, p);
      *(uint4 *)wide::word_at(tile, row(), half() * 4 + i) =
          make_uint4(__byte_perm(p[0], p[1], 0x5410), __byte_perm(p[2], p[3], 0x5410), __byte_perm(p[0], p[1], 0x7632),
                     __byte_perm(p[2], p[3], 0x7632));
    }
  }
};

// The stages of x are those of the wide form; the place of W in each holds the decoded weights.
template <ProductTile t, int32_t n_rows, int32_t k, int32_t ld_x, bool pair, class Finish>
K31_DEVICE void wide_tile(const uint16_t *x, int32_t rows, const Weights &w, int32_t n0, const Finish &finish) {
  static_assert(k % kScaleColumns == 0 && t.block == 2 * t.bn && t.stages >= 3, "a thread decodes half a row of a stage");
  constexpr int32_t kStages = t.stages, kBlocks = (int32_t)ceil_div(k, wide::kDepth);
  unsigned char *shared = wide::aligned_shared();
  auto stage = [&](int32_t block) { return shared + block % kStages * t.stage_bytes(); };
  auto start = [&](int32_t block) {
    if (block < kBlocks)
      wide::copy_rows<t.block, t.bm, k, ld_x>(stage(block), x, rows, block * wide::kDepth);
    copy_commit();
  };
  wide::Sums<t> sums;
  sums.clear();
  Part<t, n_rows, k> now, next;
  now.load(w, n0, 0);
  next.load(w, n0, wide::kDepth);
  for (int s = 0; s < wide::Sums<t>::kAhead; ++s)
    start(s);
  for (int32_t block = 0; block < kBlocks; ++block) {
    now.decode(stage(block) + t.bm * 128); // its last readers passed the barrier of the stage before
    now = next;
    next.load(w, n0, (block + 2) * wide::kDepth);
    copy_wait<wide::Sums<t>::kAhead - 1>();
    __syncthreads();
    start(block + wide::Sums<t>::kAhead);
    sums.template multiply<false>(stage(block), stage(block) + t.bm * 128);
  }
  copy_wait<0>();
  __syncthreads();
  wide::finish_sums<t, n_rows, pair>(sums, rows, n0, [&](int32_t row, int32_t col, float first, float second) {
    finish(row, col, first * kUnscale, second * kUnscale);
  });
}

} // namespace k31::kernels::packed
