// moe.route on CUDA. Few rows: a block a row (route_together.cuh). Many: a warp a row. Scores stay in registers, each lane knows
// its best one, and each of the top_k rounds takes the best of the lanes by two integer maxima: of the score's bits in their
// order, then of the lowest id among equals.
#pragma once
#include "codegen/kernels/moe/route_together.cuh"

namespace k31::kernels::route {

template <Config c> K31_DEVICE void route_row(const Args &args, int64_t row) {
  using Row = Scores<c, 32>;
  constexpr int kPer = Row::kPer;
  const float *logits = args.logits + row * c.ld_logits;
  Row scores;
  scores.load(args, row, lane_id());
  scores.finish();
  uint32_t (&score)[kPer] = scores.score;
  uint32_t best = 0;
  int at = 0;
  auto find_best = [&] {
    best = 0, at = 0;
#pragma unroll
    for (int i = 0; i < kPer; ++i)
      if (score[i] > best)
        best = score[i], at = i;
  };
  find_best();
  int32_t chosen = 0; // of choice `lane` of this group of 32 choices
  float total = 0, weight = 0;
  for (int k = 0; k < c.top_k; ++k) {
    uint32_t top = __reduce_max_sync(kAllLanes, best);
    uint32_t id = __reduce_min_sync(kAllLanes, best == top ? (uint32_t)(lane_id() + 32 * at) : 0xffffffffu);
    if (lane_id() == id % 32) {
#pragma unroll
      for (int i = 0; i < kPer; ++i)
        if (i == id / 32)
          score[i] = 0;
      find_best();
    }
    if (lane_id() == k % 32)
      chosen = (int32_t)id;
    if (k % 32 == 31 || k == c.top_k - 1) { // store a group of choices; their weights are scaled below
      int first = k - k % 32;
      bool mine = first + lane_id() <= k;
      weight = mine ? host_sigmoid(logits[chosen]) : 0.0f;
      for (int j = 0; j <= k % 32; ++j)
        total += __shfl_sync(kAllLanes, weight, j); // in order, as on the host
      if (mine) {
        args.ids[row * c.top_k + first + lane_id()] = chosen;
        args.weights[row * c.top_k + first + lane_id()] = weight;
      }
    }
  }
  float factor = c.scale;
  if constexpr (c.renormalize)
    factor = __fdiv_rn(c.scale, __fadd_rn(total, 1e-20f));
  for (int k = lane_id(); k < c.top_k; k += 32) // each lane reads what it wrote
    args.weights[row * c.top_k + k] *= factor;
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (t.together)
    return route_together<c, t>(args);
  const int32_t live = *args.live;
  for (int64_t row = blockIdx.x * t.warps + warp_id(); row < live; row += gridDim.x * t.warps)
    route_row<c>(args, row);
}

} // namespace k31::kernels::route
