// Products with MXFP4 weights for more rows of x than the thin form takes: two warp groups multiply 128 rows of W each, decoded
// in their registers, by up to bm rows of x in shared memory (wgmma with W on the left, so that a weight goes from memory to the
// tensor cores without being written anywhere). Two more take turns at bringing x. While one group decodes, the other one's
// products run. A block goes on from tile to tile, and copies of the next one's codes are under way while results of the last are
// written.
//
// Rows of x that are not there cost as much as others, so an expert's rows are shared evenly among the tiles that they need, and
// each width, a multiple of kDecodedStep rows, has an inner loop of its own. All of them leave their sums in the same registers.
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

// The tiles of a block, every gridDim.x-th of all: those of an expert follow each other, of them those with the same rows of x.
// An expert has as few rows of tiles as bm allows, each but the last as high as the next multiple of kDecodedStep to an even
// share.
template <ProductTile t, int32_t experts, int32_t n_rows> struct Tiles {
  static constexpr int32_t kOfW = (int32_t)ceil_div(n_rows, t.bn);
  const int32_t *offsets; // [experts + 1] first rows of x
  int32_t next = (int32_t)blockIdx.x;
  int32_t expert = 0, before = 0; // tiles of the experts before
  int32_t n0, row0, rows;         // of the tile: rows of W from n0 on; of x

  K31_DEVICE explicit Tiles(const int32_t *offsets) : offsets(offsets) {}

  K31_DEVICE bool take() {
    for (; expert < experts; ++expert) {
      const int32_t begin = offsets[expert], all = offsets[expert + 1] - begin;
      const int32_t parts = (all + t.bm - 1) / t.bm, own = parts * kOfW, at = next - before;
      if (at < own) {
        const int32_t high = (all + parts * kDecodedStep - 1) / (parts * kDecodedStep) * kDecodedStep, first = at / kOfW * high;
        n0 = at % kOfW * t.bn, row0 = begin + first, rows = least(all - first, high);
        next += (int32_t)gridDim.x;
        return true;
      }
      before += own;
    }
    return false;
  }
};

template <ProductTile t, int32_t experts, int32_t n_rows, int32_t k, int32_t ld_x, bool pair> struct Decoded {
  static constexpr int kConsumers = 256, kProducers = 256, kBringers = 128, kWarps = kConsumers / 32;
  static constexpr int kTurns = (int)ceil_div(k, kTurn);
  static constexpr int kChunk = t.bm * 128, kStage = 2 * kChunk; // bytes of 64 columns, and of a turn, of x
  // Begin with the next turn while products of this one run? That takes a second wait in the middle of a turn, which costs more
  // than it gives where products are long: for 64 rows 695 us against 670, for 32 it saves 1070 to 919.
  static constexpr bool ahead_of(int width) { return width <= 48; }
  static constexpr ProductTile kOfWarp = [] { // what a warp decodes: 32 rows of W
    ProductTile own;
    own.bm = 8, own.bn = 32, own.stages = kDecodedTurns;
    return own;
  }();
  static_assert(t.block == kConsumers + kProducers && t.bn == kWarps * 32 && t.bm % kDecodedStep == 0 && k % kScaleColumns == 0);
  static_assert(experts <= kDecodedExperts);
  using Codes = Ring<kOfWarp, n_rows, k, kTurn, t.bn>;
  static constexpr int kCodes = kWarps * Codes::kEnd;

  unsigned char *x, *codes; // [stages, chunk, row] rows of 64 columns; [warp, turn] slots
  Barrier *full, *empty;    // [stages]
  int32_t *offsets;         // [experts + 1]

  K31_DEVICE explicit Decoded(const int32_t *from) : x(wide::aligned_shared()) {
    codes = x + t.stages * kStage;
    full = (Barrier *)(codes + kCodes), empty = full + t.stages, offsets = (int32_t *)(empty + t.stages);
    if (threadIdx.x == 0) {
      for (int s = 0; s < t.stages; ++s)
        barrier_init(full + s, kBringers), barrier_init(empty + s, kWarps);
      barrier_init_done();
    }
    for (int e = threadIdx.x; e <= experts; e += t.block)
      offsets[e] = from[e];
    __syncthreads();
  }

  // Rows past those of the tile are left as they are: their sums are nobody's. Columns past k are zeros.
  K31_DEVICE void produce(const uint16_t *from) const {
    const int thread = threadIdx.x % kBringers, q = thread % 4, of_part = thread / 4; // 32 columns of a row of 32
    const uint32_t mine = threadIdx.x / kBringers % 2;
    uint32_t turn = 0; // so far
    for (Tiles<t, experts, n_rows> tile(offsets); tile.take();)
      for (int now = 0; now < kTurns; ++now, ++turn) {
        if (turn % 2 != mine)
          continue;
        const int32_t col = now * kTurn + q * kScaleColumns;
        barrier_wait(empty + turn % t.stages, turn / t.stages % 2 ^ 1);
#pragma unroll 1
        for (int32_t row = of_part; row < tile.rows; row += 32) {
          const uint16_t *at = from + (int64_t)(tile.row0 + row) * ld_x + col;
          uint4 v[4];
#pragma unroll
          for (int i = 0; i < 4; ++i)
            v[i] = thin::load_or_zero(at + i * 8, col < k);
          store(x + turn % t.stages * kStage, row, q, v);
        }
        fence_async_proxy();
        barrier_arrive(full + turn % t.stages);
      }
  }

  // finish(row of x, output column, sum, second sum).
  template <class Finish> K31_DEVICE void consume(const Weights &w, const Finish &finish) const {
    Codes ring(codes + warp_id() * Codes::kEnd);
    Tiles<t, experts, n_rows> ahead(offsets);
    auto start = [&] { // copies of one more turn, of the next tile where this one has no more
      if (ring.col >= k && ahead.take()) {
        const int64_t first = (int64_t)ahead.expert * n_rows;
        ring.aim({w.codes + first * (k / 2), w.scale + first * (k / kScaleColumns)}, ahead.n0 + warp_id() * 32, 0);
      }
      ring.start();
    };
    for (int i = 0; i < kDecodedTurns; ++i)
      start();
    Turn<kOfWarp> of_w;
    uint32_t a[4][2][2][4]; // words of a turn, their steps, 16 rows each
    auto take = [&] {       // past the last tile a slot is read in vain
      ring.take(of_w);
      start();
      decode(of_w, 0, a[0]);
    };
    take();
    uint32_t stage = 0, round = 0;
    float sum[2][t.bm / 8][4]; // a tile has those of its width
    // Words are decoded while products of those before run, and into registers that none of these reads. The compiler lets
    // products run on only if it sees all of them waited for before their registers are written again.
    auto multiply_tile = [&](auto rows) {
      constexpr int kWidth = decltype(rows)::kRows;
      auto multiply = [&](int word, bool add) {
        wgmma_begin();
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          const uint64_t of_x = matrix_descriptor(x + stage * kStage + word / 2 * kChunk) + (word * 2 + s) % 4 * 2;
#pragma unroll
          for (int i = 0; i < 2; ++i)
            wgmma_bf16((float (&)[kWidth / 8][4]) sum[i], a[word][s][i], of_x, add || s > 0);
        }
        wgmma_commit();
      };
#pragma unroll 1
      for (int now = 0; now < kTurns; ++now) {
        barrier_wait(full + stage, round);
        multiply(0, now > 0);
        decode(of_w, 1, a[1]);
        multiply(1, true);
        decode(of_w, 2, a[2]);
        if constexpr (ahead_of(kWidth))
          wgmma_wait<0>();
        multiply(2, true);
        decode(of_w, 3, a[3]);
        multiply(3, true);
        if constexpr (ahead_of(kWidth))
          take();
        wgmma_wait<0>();
        __syncwarp();
        if (lane_id() == 0)
          barrier_arrive(empty + stage);
        if (++stage == t.stages)
          stage = 0, round ^= 1;
        if constexpr (!ahead_of(kWidth))
          take();
      }
    };
    for (Tiles<t, experts, n_rows> tile(offsets); tile.take();) {
      in_width<kDecodedStep>(tile.rows, multiply_tile);
      finish_rows(sum, tile.n0 + warp_id() * 32 + lane_id() / 4, tile.row0, tile.rows, finish);
    }
  }

private:
  template <int rows> struct Width {
    static constexpr int kRows = rows;
  };
  // f(Width) of the least width from `width` on that holds the rows.
  template <int width, class F> K31_DEVICE static void in_width(int32_t rows, const F &f) {
    if constexpr (width < t.bm) {
      if (rows > width)
        return in_width<width + kDecodedStep>(rows, f);
    }
    f(Width<width>{});
  }

  // Word `word` of a lane's codes, as what two steps multiply: 16 rows each.
  K31_DEVICE static void decode(const Turn<kOfWarp> &of_w, int word, uint32_t (&to)[2][2][4]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint32_t low[4], high[4];
      decode_word(of_w.word_of(of_w.codes[i][0], word), of_w.factor[i][0], low);
      decode_word(of_w.word_of(of_w.codes[i][1], word), of_w.factor[i][1], high);
#pragma unroll
      for (int s = 0; s < 2; ++s)
        to[s][i][0] = low[2 * s], to[s][i][1] = high[2 * s], to[s][i][2] = low[2 * s + 1], to[s][i][3] = high[2 * s + 1];
    }
  }

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
  K31_DEVICE static void finish_rows(const float (&sum)[2][t.bm / 8][4], int32_t n0, int32_t row0, int32_t rows,
                                     const Finish &finish) {
#pragma unroll
    for (int j = 0; j < t.bm / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int32_t row = j * 8 + lane_id() % 4 * 2 + e;
        if (row >= rows)
          continue;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int32_t n = n0 + half * 8;
          const float low = sum[0][j][half * 2 + e] * kUnscale, high = sum[1][j][half * 2 + e] * kUnscale;
          if (pair && n < n_rows)
            finish(row0 + row, n / 32 * 16 + n % 16, low, high);
          if (!pair && n < n_rows)
            finish(row0 + row, n, low, 0.0f);
          if (!pair && n + 16 < n_rows)
            finish(row0 + row, n + 16, high, 0.0f);
        }
      }
    }
  }
};

// x and w of all experts; rows [offsets[e], offsets[e + 1]) of x are multiplied by W of expert e.
template <ProductTile t, int32_t experts, int32_t n_rows, int32_t k, int32_t ld_x, bool pair, class Finish>
K31_DEVICE void decoded_tiles(const uint16_t *x, const int32_t *offsets, const Weights &w, const Finish &finish) {
  const Decoded<t, experts, n_rows, k, ld_x, pair> all(offsets);
  if (threadIdx.x >= all.kConsumers) {
    fewer_registers<48>();
    all.produce(x);
  } else {
    more_registers<208>();
    all.consume(w, finish);
  }
}

} // namespace k31::kernels::packed
