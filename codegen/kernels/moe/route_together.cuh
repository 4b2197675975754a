// moe.route by a block a row. Each round of a warp (route.cuh) waits for the one before it; here nothing goes in rounds:
//   1. Every thread scores a few experts. The threads are in top_k teams or more, and the least of the teams' best scores is a
//      bound: one expert of each team reaches it, so the top_k do.
//   2. The experts that reach it (some 50 of 896 when the choices spread) are put into a list, in any order.
//   3. A candidate's place is the number of candidates before it: a higher score, or the same and a lower expert. Places below
//      top_k are the choices. If scores are equal or badly spread, the list is long, which costs time only.
#pragma once
#include "codegen/kernels/common/reduce.cuh"
#include "codegen/kernels/moe/route_scores.cuh"

namespace k31::kernels::route {

// Teams of threads for top_k choices: threads of the same number modulo a power of two up to 32, so that neighbouring experts,
// which may score alike, are in different teams. For more choices each thread is a team.
constexpr int columns_of(int top_k) {
  int columns = 1;
  while (columns < top_k && columns < 32)
    columns *= 2;
  return columns;
}

template <Config c, Tile t> K31_DEVICE void route_together(const Args &args) {
  constexpr int kThreads = t.threads(), kColumns = columns_of(c.top_k); // lanes of a warp in different teams
  constexpr int kRankers = 4;                                           // threads that count for one candidate
  static_assert(c.top_k <= kThreads, "a team for each choice");
  using Row = Scores<c, kThreads>;
  uint64_t *key = (uint64_t *)shared_memory(); // [experts] score, then the lower expert first
  float *candidate_weight = (float *)(key + c.experts), *weight = candidate_weight + c.experts;
  uint32_t *best = (uint32_t *)(weight + c.top_k);
  int32_t *length = (int32_t *)(best + kThreads);

  const int32_t live = *args.live;
  int64_t row = blockIdx.x; // within the capacity: scored before it is known whether it lives, so that no load waits for another
  do {
    Row scores;
    scores.load(args, row, threadIdx.x);
    scores.finish();
    uint32_t mine = 0;
#pragma unroll
    for (int i = 0; i < Row::kPer; ++i)
      mine = max(mine, scores.score[i]);
#pragma unroll
    for (int step = 16; step >= kColumns; step /= 2)
      mine = max(mine, __shfl_xor_sync(kAllLanes, mine, step));
    if (row >= live)
      return;
    if (lane_id() < kColumns)
      best[warp_id() * kColumns + lane_id()] = mine;
    if (threadIdx.x == 0)
      *length = 0;
    __syncthreads();

    uint32_t bound = c.top_k <= 32 ? 0 : 0xffffffffu; // of this lane's team, over the warps; or of all that it sees
#pragma unroll
    for (int i = lane_id(); i < t.warps * kColumns; i += 32)
      bound = c.top_k <= 32 ? max(bound, best[i]) : min(bound, best[i]);
#pragma unroll
    for (int step = 16; step >= kColumns; step /= 2)
      bound = max(bound, __shfl_xor_sync(kAllLanes, bound, step));
    bound = max(__reduce_min_sync(kAllLanes, bound), 1u); // 0 is an expert that is not there
    int32_t hits = 0;
#pragma unroll
    for (int i = 0; i < Row::kPer; ++i)
      hits += scores.score[i] >= bound;
    int32_t at = claim(hits, length);
#pragma unroll
    for (int i = 0; i < Row::kPer; ++i)
      if (scores.score[i] >= bound) {
        key[at] = (uint64_t)scores.score[i] << 32 | ~(uint32_t)(threadIdx.x + kThreads * i);
        candidate_weight[at++] = scores.weight[i];
      }
    __syncthreads();

    const int32_t candidates = *length;
    for (int first = 0; first < candidates; first += kThreads / kRankers) {
      const int i = first + threadIdx.x / kRankers;
      const uint64_t own = i < candidates ? key[i] : 0;
      int32_t before = 0;
#pragma unroll 4
      for (int j = threadIdx.x % kRankers; j < candidates; j += kRankers)
        before += key[j] > own;
      before = warp_sum<kRankers>(before);
      if (threadIdx.x % kRankers == 0 && i < candidates && before < c.top_k) {
        args.ids[row * c.top_k + before] = (int32_t)~(uint32_t)own;
        weight[before] = candidate_weight[i];
      }
    }
    __syncthreads();

    if (threadIdx.x < c.top_k) {
      float factor = c.scale;
      if constexpr (c.renormalize) {
        float total = 0;
#pragma unroll 16
        for (int k = 0; k < c.top_k; ++k)
          total += weight[k]; // in order, as on the host
        factor = __fdiv_rn(c.scale, __fadd_rn(total, 1e-20f));
      }
      args.weights[row * c.top_k + threadIdx.x] = weight[threadIdx.x] * factor;
    }
    row += gridDim.x;
  } while (row < live);
}

} // namespace k31::kernels::route
