// Products whose tiles come by tensor maps: a producer warp keeps all stages under way, a warp group takes 64 rows of x by bn
// rows of W, and blocks take tiles in turns until none is left. With few rows this is bound by reading W: the deep stages hold
// some 200 KB a multiprocessor in flight, and bn is chosen so that each multiprocessor has a tile.
#pragma once
#include "codegen/kernels/common/tma.cuh"
#include "codegen/kernels/common/wide.cuh"

namespace k31::kernels::mapped {

// finish(row, column, sum, second sum, the same two of column + 1) for each two sums of the rows before `live`.
template <ProductTile t, int32_t n_rows, bool pair, class Finish>
K31_DEVICE void finish_sums(const float (&sum)[t.bn / 8][4], int32_t row0, int32_t live, int32_t n0, const Finish &finish) {
  static_assert(!pair || t.bn % 32 == 0, "both sums of a pair in one tile");
  const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t row = row0 + warp_id() * 16 + half * 8 + g;
    if (row >= live)
      continue;
#pragma unroll
    for (int n = 0; n < t.bn / 8; ++n) {
      if (pair && n % 4 >= 2)
        continue;
      constexpr int kSecond = pair ? 2 : 0;
      const int32_t at = n0 + n * 8 + 2 * q;
      if (at < n_rows) // n_rows is a multiple of 8
        finish(row, pair ? at / 32 * 16 + at % 16 : at, sum[n][half * 2], sum[n + kSecond][half * 2], sum[n][half * 2 + 1],
               sum[n + kSecond][half * 2 + 1]);
    }
  }
}

template <ProductTile t> struct Stages {
  static constexpr int kWarps = t.bm / 16, kX = t.bm * 128, kW = t.bn * 128;
  unsigned char *data;
  Barrier *full, *empty; // [stages]
  K31_DEVICE Stages()
      : data(wide::aligned_shared()), full((Barrier *)(data + t.stages * t.stage_bytes())), empty(full + t.stages) {}
  K31_DEVICE unsigned char *x(int s) const { return data + s * t.stage_bytes(); }
  K31_DEVICE unsigned char *w(int s) const { return x(s) + kX; }

  // All threads. Rows of x that no box brings stay zero for ever.
  K31_DEVICE void prepare() const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < t.stages; ++s)
        barrier_init(full + s, 1), barrier_init(empty + s, kWarps);
      barrier_init_done();
    }
    if constexpr (t.box_x < t.bm) {
      for (int i = threadIdx.x; i < t.stages * (t.bm - t.box_x) * 8; i += t.block)
        *(uint4 *)(x(i / ((t.bm - t.box_x) * 8)) + t.box_x * 128 + i % ((t.bm - t.box_x) * 8) * 16) = make_uint4(0, 0, 0, 0);
      fence_async_proxy();
    }
    __syncthreads();
  }
};

// Turn i of this block: the tile at (row0, n0); false past the last one.
template <ProductTile t, int32_t n_rows> K31_DEVICE bool tile_of(int i, int32_t live, int32_t &row0, int32_t &n0) {
  const int32_t tiles_m = (int32_t)ceil_div(live, t.bm), tiles_n = (int32_t)ceil_div(n_rows, t.bn);
  const int64_t id = blockIdx.x + (int64_t)i * gridDim.x;
  if (id >= (int64_t)tiles_m * tiles_n)
    return false;
  wide::place_of(id, tiles_m, tiles_n, row0, n0);
  row0 *= t.bm, n0 *= t.bn;
  return true;
}

// One thread of the block.
template <ProductTile t, int32_t n_rows, int32_t k>
K31_DEVICE void produce(const Stages<t> &stages, const EncodedMap *maps, int32_t live) {
  constexpr int32_t kBlocks = (int32_t)ceil_div(k, wide::kDepth);
  int stage = 0, phase = 0;
  int32_t row0, n0;
  for (int i = 0; tile_of<t, n_rows>(i, live, row0, n0); ++i)
    for (int32_t block = 0; block < kBlocks; ++block) {
      Barrier *full = stages.full + stage;
      unsigned char *x = stages.x(stage), *w = stages.w(stage);
      barrier_wait(stages.empty + stage, phase ^ 1);
      barrier_expect(full, (t.box_x + t.bn) * 128);
      copy_box(x, maps, block * wide::kDepth, row0, full);
      copy_box(w, maps + 1, block * wide::kDepth, n0, full);
      if (++stage == t.stages)
        stage = 0, phase ^= 1;
    }
}

template <ProductTile t, int32_t n_rows, int32_t k, bool pair, class Finish>
K31_DEVICE void consume(const Stages<t> &stages, int32_t live, const Finish &finish) {
  constexpr int32_t kBlocks = (int32_t)ceil_div(k, wide::kDepth);
  auto leave = [&](int stage) {
    if (lane_id() == 0)
      barrier_arrive(stages.empty + stage);
  };
  float sum[t.bn / 8][4];
  int stage = 0, phase = 0;
  int32_t row0, n0;
  for (int i = 0; tile_of<t, n_rows>(i, live, row0, n0); ++i) {
    int before = 0;
    for (int32_t block = 0; block < kBlocks; ++block) {
      barrier_wait(stages.full + stage, phase);
      const uint64_t a = matrix_descriptor(stages.x(stage) + warp_id() / 4 * 8192), b = matrix_descriptor(stages.w(stage));
      wgmma_begin();
#pragma unroll
      for (int step = 0; step < wide::kDepth / 16; ++step)
        wgmma_bf16(sum, a + step * 2, b + step * 2, block > 0 || step > 0);
      wgmma_commit();
      if (block > 0) {
        wgmma_wait<1>(); // the products of the stage before
        leave(before);
      }
      before = stage;
      if (++stage == t.stages)
        stage = 0, phase ^= 1;
    }
    wgmma_wait<0>();
    leave(before);
    finish_sums<t, n_rows, pair>(sum, row0, live, n0, finish);
  }
}

// maps: x, then W. finish as in finish_sums.
template <ProductTile t, int32_t n_rows, int32_t k, bool pair, class Finish>
K31_DEVICE void product(const EncodedMap *maps, int32_t live, const Finish &finish) {
  static_assert(t.block == t.bm * 2 + 128, "a warp group for 64 rows, and the producer's");
  const Stages<t> stages;
  stages.prepare();
  if (warp_id() >= t.bm / 16) {
    if constexpr (t.bm == 128)
      fewer_registers<40>();
    if (threadIdx.x == t.bm * 2)
      produce<t, n_rows, k>(stages, maps, live);
  } else {
    if constexpr (t.bm == 128)
      more_registers<232>();
    consume<t, n_rows, k, pair>(stages, live, finish);
  }
}

} // namespace k31::kernels::mapped
