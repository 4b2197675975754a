// Products whose tiles come by tensor maps: a producer warp keeps all stages under way, a warp group takes 64 rows of x by bn
// rows of W, and blocks take tiles in turns until none is left. With few rows this is bound by reading W: the deep stages hold
// some 200 KB a multiprocessor in flight, and bn is chosen so that each multiprocessor has a tile. Where W is too narrow for
// that, the blocks of a cluster share the columns of K of a tile and add their sums through each other's shared memory.
#pragma once
#include "codegen/kernels/common/cluster.cuh"
#include "codegen/kernels/common/tma.cuh"
#include "codegen/kernels/common/wgmma.cuh"
#include "codegen/kernels/common/wide.cuh"

namespace k31::kernels::mapped {

// What becomes of sums. finish(row, column, sum, second sum) takes one element; finish(row, columns, sums, second sums) takes G
// pairs of neighbours at once, each at an even column and the next, so that its loads and chains of operations overlap.
// `pair`: the second matrix's rows come 16 behind the first one's in each 32.
template <bool pair> K31_DEVICE int32_t column_of(int32_t at) { return pair ? at / 32 * 16 + at % 16 : at; }

// `at`: even rows of W, within the tile of t.bn from its first one on.
template <ProductTile t, int32_t n_rows, bool pair, int G, class Finish>
K31_DEVICE void finish_pairs(int32_t row, const int32_t (&at)[G], const float2 (&first)[G], const float2 (&second)[G],
                             const Finish &finish) {
  int32_t col[G];
#pragma unroll
  for (int i = 0; i < G; ++i)
    col[i] = column_of<pair>(at[i]);
  if constexpr (n_rows % t.bn == 0) { // no tile is cut: no branches
    finish(row, col, first, second);
  } else {
#pragma unroll
    for (int i = 0; i < G; ++i) {
      if (n_rows % 2 == 0 ? at[i] < n_rows : at[i] + 1 < n_rows)
        finish(row, {col[i]}, {first[i]}, {second[i]});
      else if (n_rows % 2 != 0 && at[i] < n_rows)
        finish(row, col[i], first[i].x, second[i].x);
    }
  }
}

// The sums of a warp's 16 rows, as products leave them.
template <ProductTile t, int32_t n_rows, bool pair, class Finish>
K31_DEVICE void finish_sums(const float (&sum)[t.bn / 8][4], int32_t row0, int32_t live, int32_t n0, const Finish &finish) {
  static_assert(!pair || t.bn % 32 == 0, "both sums of a pair in one tile");
  constexpr int kPairs = t.bn / (pair ? 16 : 8), kTogether = kPairs % 4 == 0 ? 4 : 2, kSecond = pair ? 2 : 0;
  static_assert(kPairs % kTogether == 0);
  const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t row = row0 + warp_id() * 16 + half * 8 + g;
    if (row >= live)
      continue;
#pragma unroll
    for (int i = 0; i < kPairs; i += kTogether) {
      int32_t at[kTogether];
      float2 first[kTogether], second[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int n = pair ? (i + j) / 2 * 4 + (i + j) % 2 : i + j;
        at[j] = n0 + n * 8 + 2 * q;
        first[j] = make_float2(sum[n][half * 2], sum[n][half * 2 + 1]);
        second[j] = make_float2(sum[n + kSecond][half * 2], sum[n + kSecond][half * 2 + 1]);
      }
      finish_pairs<t, n_rows, pair>(row, at, first, second, finish);
    }
  }
}

// The sums that each block of a cluster has of one tile, [bm, bn] in shared memory. Rows are 8 floats further apart than they are
// long, so that eight rows of a warp's products meet in no bank.
template <ProductTile t> struct ClusterSums {
  static constexpr int kPitch = t.bn + 8;
  static_assert(t.split == 1 || t.bm * kPitch * 4 <= t.stages * t.stage_bytes(), "sums take the place of the stages");
  float *sums;

  K31_DEVICE void put(const float (&sum)[t.bn / 8][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float *row = sums + (warp_id() * 16 + half * 8 + lane_id() / 4) * kPitch + lane_id() % 4 * 2;
#pragma unroll
      for (int n = 0; n < t.bn / 8; ++n)
        *(float2 *)(row + n * 8) = make_float2(sum[n][half * 2], sum[n][half * 2 + 1]);
    }
  }
  K31_DEVICE float2 total(int row, int col) const {
    float2 v = make_float2(0, 0);
#pragma unroll
    for (int block = 0; block < t.split; ++block) {
      const float2 part = load_from_block((const float2 *)(sums + row * kPitch + col), block);
      v.x += part.x, v.y += part.y;
    }
    return v;
  }
  // Blocks take turns at the elements of the live rows; `thread` of bm * 2.
  template <int32_t n_rows, bool pair, class Finish>
  K31_DEVICE void finish_all(int thread, int32_t row0, int32_t live, int32_t n0, const Finish &finish) const {
    constexpr int kPairs = (pair ? t.bn / 2 : t.bn) / 2; // of columns, in a row
    const int count = least(live - row0, t.bm) * kPairs;
    for (int i = cluster_rank() * t.bm * 2 + thread; i < count; i += t.split * t.bm * 2) {
      const int row = i / kPairs, out = i % kPairs * 2, at = pair ? out / 16 * 32 + out % 16 : out;
      const float2 first = total(row, at);
      finish_pairs<t, n_rows, pair>(row0 + row, {n0 + at}, {first}, {pair ? total(row, at + 16) : first}, finish);
    }
  }
};

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

// Turn i of this block or cluster: the tile at (row0, n0); false past the last one.
template <ProductTile t, int32_t n_rows> K31_DEVICE bool tile_of(int i, int32_t live, int32_t &row0, int32_t &n0) {
  const int32_t tiles_m = (int32_t)ceil_div(live, t.bm), tiles_n = (int32_t)ceil_div(n_rows, t.bn);
  const int64_t id = (blockIdx.x + (int64_t)i * gridDim.x) / t.split;
  if (id >= (int64_t)tiles_m * tiles_n)
    return false;
  wide::place_of(id, tiles_m, tiles_n, row0, n0);
  row0 *= t.bm, n0 *= t.bn;
  return true;
}

// The stages of K that this block takes.
template <ProductTile t, int32_t k> struct Depth {
  static constexpr int32_t kAll = (int32_t)ceil_div(k, wide::kDepth);
  static_assert(t.split <= kAll, "no block of a cluster is without a stage");
  int32_t begin = 0, end = kAll;
  K31_DEVICE Depth() {
    if constexpr (t.split > 1) {
      const int rank = cluster_rank();
      begin = rank * kAll / t.split, end = (rank + 1) * kAll / t.split;
    }
  }
};

// Live rows as far as the order of tiles asks. Tiles that are begun ahead are finished, if no row is live with nothing to store.
template <ProductTile t> K31_DEVICE int32_t rows_of_tiles(int32_t live) { return t.ahead ? most(live, 1) : live; }

// One thread of the block.
template <ProductTile t, int32_t n_rows, int32_t k>
K31_DEVICE void produce(const Stages<t> &stages, const EncodedMap *maps, const int32_t *live_at) {
  const Depth<t, k> depth;
  constexpr uint32_t kBytes = (t.box_x + t.bn) * 128;
  int32_t begun = 0; // stages whose box of W is under way
  if constexpr (t.ahead) {
    int32_t row0, n0;
    if (tile_of<t, n_rows>(0, 1, row0, n0))
      for (; begun < t.stages && depth.begin + begun < depth.end; ++begun) {
        barrier_expect(stages.full + begun, kBytes);
        copy_box(stages.w(begun), maps + 1, (depth.begin + begun) * wide::kDepth, n0, stages.full + begun);
      }
    wait_for_launches();
  }
  const int32_t live = rows_of_tiles<t>(*live_at);
  int stage = 0, phase = 0;
  int32_t row0, n0;
  for (int i = 0; tile_of<t, n_rows>(i, live, row0, n0); ++i)
    for (int32_t block = depth.begin; block < depth.end; ++block) {
      Barrier *full = stages.full + stage;
      unsigned char *x = stages.x(stage), *w = stages.w(stage);
      if (begun > 0) {
        --begun;
      } else {
        barrier_wait(stages.empty + stage, phase ^ 1);
        barrier_expect(full, kBytes);
        copy_box(w, maps + 1, block * wide::kDepth, n0, full);
      }
      copy_box(x, maps, block * wide::kDepth, row0, full);
      if (++stage == t.stages)
        stage = 0, phase ^= 1;
    }
}

template <ProductTile t, int32_t n_rows, int32_t k, bool pair, class Finish>
K31_DEVICE void consume(const Stages<t> &stages, int32_t live, const Finish &finish) {
  const Depth<t, k> depth;
  auto leave = [&](int stage) {
    if (lane_id() == 0)
      barrier_arrive(stages.empty + stage);
  };
  float sum[t.bn / 8][4];
  int stage = 0, phase = 0;
  int32_t row0, n0;
  for (int i = 0; tile_of<t, n_rows>(i, rows_of_tiles<t>(live), row0, n0); ++i) {
    int before = 0;
    for (int32_t block = depth.begin; block < depth.end; ++block) {
      barrier_wait(stages.full + stage, phase);
      const uint64_t a = matrix_descriptor(stages.x(stage) + warp_id() / 4 * 8192), b = matrix_descriptor(stages.w(stage));
      wgmma_begin();
#pragma unroll
      for (int step = 0; step < wide::kDepth / 16; ++step)
        wgmma_bf16(sum, a + step * 2, b + step * 2, block > depth.begin || step > 0);
      wgmma_commit();
      if (block > depth.begin) {
        wgmma_wait<1>(); // the products of the stage before
        leave(before);
      }
      before = stage;
      if (++stage == t.stages)
        stage = 0, phase ^= 1;
    }
    wgmma_wait<0>();
    leave(before);
    if constexpr (t.split == 1) {
      finish_sums<t, n_rows, pair>(sum, row0, live, n0, finish);
    } else {
      warps_meet(1, t.bm * 2); // all products have been read from the stages
      ClusterSums<t>{(float *)stages.data}.put(sum);
      break;
    }
  }
}

// After the products, all threads: adds the sums of the cluster's blocks.
template <ProductTile t, int32_t n_rows, bool pair, class Finish>
K31_DEVICE void finish_cluster(const Stages<t> &stages, const int32_t *live_at, const Finish &finish) {
  cluster_meet();
  if (threadIdx.x < t.bm * 2) {
    const int32_t live = *live_at;
    int32_t row0, n0;
    if (tile_of<t, n_rows>(0, live, row0, n0))
      ClusterSums<t>{(float *)stages.data}.template finish_all<n_rows, pair>(threadIdx.x, row0, live, n0, finish);
  }
  cluster_meet(); // no block ends while another reads its sums
}

// maps: x, then W. live_at: [1]. finish: see finish_pairs.
template <ProductTile t, int32_t n_rows, int32_t k, bool pair, class Finish>
K31_DEVICE void product(const EncodedMap *maps, const int32_t *live_at, const Finish &finish) {
  static_assert(t.block == t.bm * 2 + 128, "a warp group for 64 rows, and the producer's");
  const Stages<t> stages;
  stages.prepare();
  if (warp_id() >= t.bm / 16) {
    if constexpr (t.bm == 128)
      fewer_registers<40>();
    if (threadIdx.x == t.bm * 2)
      produce<t, n_rows, k>(stages, maps, live_at);
  } else {
    if constexpr (t.bm == 128)
      more_registers<232>();
    if constexpr (t.ahead)
      wait_for_launches();
    consume<t, n_rows, k, pair>(stages, *live_at, finish);
  }
  if constexpr (t.split > 1)
    finish_cluster<t, n_rows, pair>(stages, live_at, finish);
}

} // namespace k31::kernels::mapped
