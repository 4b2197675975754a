// nn.sample on CUDA: one block a row; greedy is one pass over the logits, top-p five.
//
// Top-p needs no sort. Weights e^((s - s_max) / T) lie in [0, 1], so their bits, 30 of them, are in the order of their values:
// three histograms of 10 bits each, holding the mass of each bin, find the least likely kept weight from the top. Masses are
// integers, weight * 2^45: sums do not depend on the order of additions, so every run gives the same ids, and they differ from
// the host's fp64 sums by less than 2^-27 of the smallest total. Weights are the host's bit for bit (common/math.cuh).
#pragma once
#include "codegen/kernels/common/math.cuh"
#include "codegen/kernels/common/reduce.cuh"
#include "codegen/kernels/nn/sample.tile.h"

namespace k31::kernels::sample {

typedef unsigned long long Mass; // 2^45 is the mass of the best token; a vocabulary of 2^18 still fits

template <Config c> struct Row {
  const float *logits;
  const uint8_t *mask;
  const float *bias;
  float highest, temperature;

  // The logit after mask and bias; -inf when excluded.
  K31_DEVICE float score(int32_t id) const {
    float v = logits[id];
    if constexpr (c.masked)
      v = mask[id] ? v + bias[id] : __int_as_float(0xff800000);
    return v;
  }
  K31_DEVICE float weight(int32_t id) const { return host_exp(__fdiv_rn(__fsub_rn(score(id), highest), temperature)); }
};

K31_DEVICE Mass mass_of(float weight) { return (Mass)(weight * 35184372088832.0f); } // 2^45: exact but for what is below 1

// Exclusive sum over the threads of the block; `total` gets the sum of all. Begins and ends with a barrier.
template <Tile t> K31_DEVICE Mass block_prefix(Mass v, Mass *scratch, Mass &total) {
  Mass before = warp_prefix(v);
  __syncthreads();
  if (lane_id() == 31)
    scratch[warp_id()] = before + v;
  __syncthreads();
  total = 0;
  for (int w = 0; w < t.threads() / 32; ++w) {
    if (w < warp_id())
      before += scratch[w];
    total += scratch[w];
  }
  __syncthreads();
  return before;
}

// What of the row is kept: weights above `limit` (bits) and the first `ties` ids whose weight is `limit`.
struct Kept {
  uint32_t limit = 0;
  Mass ties = 0;
  Mass mass = 0; // of all of them
};

template <Config c, Tile t> K31_DEVICE Kept find_kept(const Row<c> &row, float top_p, Mass *bins, Mass *scratch, Mass *found) {
  Mass above = 0;
  uint32_t prefix = 0;
  double target = 0;
  for (int shift = 20; shift >= 0; shift -= 10) {
    for (int b = threadIdx.x; b < kBins; b += t.threads())
      bins[b] = 0;
    __syncthreads();
    for (int32_t id = threadIdx.x; id < c.vocab; id += t.threads()) {
      float w = row.weight(id);
      uint32_t bits = __float_as_uint(w);
      if (w > 0 && (shift == 20 || bits >> (shift + 10) == prefix))
        atomicAdd(bins + (bits >> shift) % kBins, mass_of(w));
    }
    __syncthreads();
    Mass bin = bins[kBins - 1 - threadIdx.x], total; // the most likely first
    Mass before = above + block_prefix<t>(bin, scratch, total);
    if (shift == 20) {
      if (!(top_p < 1))
        return {0, 0, total};
      target = (double)top_p * (double)total;
      target = target < 1 ? 1 : target;
    }
    if ((double)before < target && (double)(before + bin) >= target)
      found[0] = kBins - 1 - threadIdx.x, found[1] = before;
    __syncthreads();
    prefix = prefix << 10 | (uint32_t)found[0];
    above = found[1];
    __syncthreads();
  }
  Kept kept{prefix, 1, 0};
  Mass each = mass_of(__uint_as_float(prefix));
  kept.ties = (Mass)((target - (double)above) / (double)each);
  kept.ties = kept.ties < 1 ? 1 : kept.ties;
  while ((double)(above + kept.ties * each) < target)
    ++kept.ties;
  while (kept.ties > 1 && (double)(above + (kept.ties - 1) * each) >= target)
    --kept.ties;
  kept.mass = above + kept.ties * each;
  return kept;
}

template <Config c, Tile t>
K31_DEVICE int32_t draw(const Row<c> &row, const Params &params, Mass *bins, Mass *scratch, Mass *found) {
  constexpr int kWarps = t.threads() / 32;
  if (threadIdx.x == 0)
    found[0] = 0, found[1] = 0, found[2] = ~(Mass)0;
  __syncthreads();
  const Kept kept = find_kept<c, t>(row, params.top_p, bins, scratch, found);
  const double stop = random_unit(params.seed, params.counter) * (double)kept.mass;
  const Mass each = mass_of(__uint_as_float(kept.limit));
  // Each warp walks its run of ids; ties count by their place among all ties.
  constexpr int32_t kRun = (int32_t)(ceil_div(c.vocab, kWarps * 32) * 32);
  const int32_t first = least((int64_t)warp_id() * kRun, c.vocab), last = least((int64_t)first + kRun, c.vocab);
  Mass above = 0, ties = 0;
  for (int32_t id = first + lane_id(); id < last; id += 32) {
    float w = row.weight(id);
    uint32_t bits = __float_as_uint(w);
    if (bits > kept.limit)
      above += mass_of(w);
    else if (bits == kept.limit)
      ++ties;
  }
  above = warp_sum(above), ties = warp_sum(ties);
  if (lane_id() == 0)
    scratch[warp_id()] = above, scratch[32 + warp_id()] = ties;
  __syncthreads();
  Mass sum = 0, seen = 0; // before this warp's run
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp_id())
      break;
    Mass take = seen < kept.ties ? kept.ties - seen : 0;
    sum += scratch[w] + each * (take < scratch[32 + w] ? take : scratch[32 + w]);
    seen += scratch[32 + w];
  }
  Mass take = seen < kept.ties ? kept.ties - seen : 0;
  Mass mine = above + each * (take < ties ? take : ties);
  if ((double)sum <= stop && (double)(sum + mine) > stop) { // the whole warp or none of it: the token is in its run
    for (int32_t at = first; at < last; at += 32) {
      int32_t id = at + lane_id();
      float w = id < last ? row.weight(id) : 0;
      uint32_t bits = __float_as_uint(w);
      uint32_t tied = __ballot_sync(kAllLanes, id < last && bits == kept.limit);
      Mass place = seen + __popc(tied & ((1u << lane_id()) - 1));
      bool in = bits > kept.limit || (id < last && bits == kept.limit && place < kept.ties);
      Mass m = in ? mass_of(w) : 0, before = sum + warp_prefix(m);
      uint32_t reached = __ballot_sync(kAllLanes, in && (double)(before + m) > stop);
      if (reached) {
        if (lane_id() == 0)
          found[2] = at + __ffs(reached) - 1;
        break;
      }
      sum = __shfl_sync(kAllLanes, before + m, 31);
      seen += __popc(tied);
    }
  }
  __syncthreads();
  return (int32_t)found[2];
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  static_assert(t.block == kBins, "one thread a bin");
  static_assert(c.vocab <= 1 << 18, "masses of more tokens do not fit 64 bits");
  constexpr int kAt = c.masked ? 2 : 0;
  Mass *bins = (Mass *)shared_memory(), *scratch = bins + kBins, *found = scratch + 4 * 32;
  const int32_t live = *(const int32_t *)args.tail[kAt];
  int32_t *out = (int32_t *)args.tail[kAt + 1];
  for (int64_t r = blockIdx.x; r < live; r += gridDim.x) {
    Row<c> row{args.logits + r * c.ld_logits, nullptr, nullptr, 0, 0};
    if constexpr (c.masked) {
      row.mask = (const uint8_t *)args.tail[0] + r * c.vocab;
      row.bias = (const float *)args.tail[1] + r * c.vocab;
    }
    // The best id, the lowest among equals, as one integer: the score's bits in their order, then the id reversed.
    const float infinity = __int_as_float(0x7f800000);
    Mass best = 0;
    bool bad = false;
#pragma unroll 4
    for (int32_t id = threadIdx.x; id < c.vocab; id += t.threads()) {
      float raw = row.logits[id], v = row.score(id);
      bad |= !(raw - raw == 0.0f) || !(v < infinity);
      if (v > -infinity) {
        Mass key = (Mass)ordered_bits(v + 0.0f) << 32 | (0xffffffffu - (uint32_t)id);
        best = key > best ? key : best;
      }
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      Mass other = __shfl_xor_sync(kAllLanes, best, step);
      best = other > best ? other : best;
    }
    if (lane_id() == 0)
      scratch[warp_id()] = best;
    bad = __syncthreads_or(bad);
    for (int w = 0; w < t.threads() / 32; ++w)
      best = scratch[w] > best ? scratch[w] : best;
    __syncthreads();
    int32_t id = bad || best == 0 ? -1 : (int32_t)(0xffffffffu - (uint32_t)best);
    const Params params = args.params[r];
    if (params.temperature > 0 && id >= 0) {
      row.highest = row.score(id), row.temperature = params.temperature;
      id = draw<c, t>(row, params, bins, scratch, found);
    }
    if (threadIdx.x == 0)
      out[r] = id;
    __syncthreads();
  }
}

} // namespace k31::kernels::sample
