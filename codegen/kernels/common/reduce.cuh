// Sums and maxima over a warp, a team of neighbouring lanes, or a block.
#pragma once
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels {

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr int kNone = 1 << 20;

K31_DEVICE int lane_id() { return threadIdx.x & 31; }
K31_DEVICE int warp_id() { return threadIdx.x >> 5; }

// Sum over groups of `Lanes` neighbouring lanes (a power of two up to 32); every lane gets it, in the same order of additions.
template <int Lanes = 32, class T> K31_DEVICE T warp_sum(T v) {
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2)
    v += __shfl_xor_sync(kAllLanes, v, step);
  return v;
}
template <int Lanes = 32> K31_DEVICE float warp_max(float v) {
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2)
    v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, step));
  return v;
}
// Sums of N values over a warp, one of them to each lane: `mine` gets its number, N or more where the lane has none. Each step
// halves the values of a lane: it keeps one half and gives the other half's values to its partner.
template <int N, int Step = 16> K31_DEVICE float warp_sums(const float (&v)[N], int &mine) {
  constexpr int kLow = (N + 1) / 2;
  const bool high = lane_id() & Step;
  float half[kLow];
#pragma unroll
  for (int i = 0; i < kLow; ++i) {
    const float upper = kLow + i < N ? v[kLow + i < N ? kLow + i : 0] : 0;
    half[i] = (high ? upper : v[i]) + __shfl_xor_sync(kAllLanes, high ? v[i] : upper, Step);
  }
  if constexpr (Step > 1) {
    const float sum = warp_sums<kLow, Step / 2>(half, mine);
    mine = mine >= kLow || (high && mine + kLow >= N) ? kNone : mine + (high ? kLow : 0);
    return sum;
  } else {
    mine = !high ? 0 : N > 1 ? 1 : kNone;
    return half[0];
  }
}

// Sum of the values of lower lanes.
template <class T> K31_DEVICE T warp_prefix(T v) {
  T sum = v;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    T other = __shfl_up_sync(kAllLanes, sum, step);
    if (lane_id() >= step)
      sum += other;
  }
  return sum - v;
}

// Room in a list of the block for what the lanes have: `hits` of a lane. Returns where this lane's begin; `length` in shared
// memory grows by all of them. Warps come in any order.
K31_DEVICE int32_t claim(int32_t hits, int32_t *length) {
  const int32_t before = warp_prefix(hits);
  int32_t first = 0;
  if (lane_id() == 31 && before + hits > 0)
    first = atomicAdd(length, before + hits);
  return __shfl_sync(kAllLanes, first, 31) + before;
}

// Sum over all `Threads` threads of the block; `scratch` has one T a warp. Begins and ends with a barrier, so scratch may be
// used again at once.
template <int Threads, class T> K31_DEVICE T block_sum(T v, T *scratch) {
  v = warp_sum(v);
  if constexpr (Threads > 32) {
    __syncthreads();
    if (lane_id() == 0)
      scratch[warp_id()] = v;
    __syncthreads();
    v = scratch[0];
#pragma unroll
    for (int w = 1; w < Threads / 32; ++w)
      v += scratch[w];
    __syncthreads();
  }
  return v;
}

// A float as an integer of the same order; NaN must be excluded before.
K31_DEVICE uint32_t ordered_bits(float v) {
  uint32_t u = __float_as_uint(v);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

} // namespace k31::kernels
