// moe.permute on CUDA: a counting sort of the choices by expert in one launch without workspace. Of few choices: permute_few.cuh.
//
// The choices are cut into one run of tokens a block. Every block counts all choices by expert, and those before its run; that
// reads 4 bytes a choice (262 KB for 4096 tokens of 16 choices) from the second-level cache and gives each block its cursors
// without waiting for others. Inside its run a choice's place follows from the number of equal ids before it: 512 at a time, each
// thread looks through those before its own. So rows keep the order of the tokens, and every run gives the same result.
#pragma once
#include "codegen/kernels/moe/permute_few.cuh"

namespace k31::kernels::permute {

// Where choice i of the live rows is: they need not follow each other when several ranks gave theirs.
template <Config c> K31_DEVICE int64_t place(const Args &args, int64_t choice) {
  if constexpr (c.groups == 1)
    return choice;
  return args.rows(c).row(choice / c.top_k) * c.top_k + choice % c.top_k;
}

// Expert of this rank, or a value >= experts.
template <Config c> K31_DEVICE uint32_t local_expert(const Args &args, uint32_t first_expert, int64_t choice) {
  return (uint32_t)args.ids[place<c>(args, choice)] - first_expert;
}

// Turns counts into starts: exclusive sums over the experts. Returns the number of all counted rows.
template <Config c, Tile t> K31_DEVICE int32_t start_experts(int32_t *count, int32_t *scratch) {
  int32_t base = 0;
  for (int first = 0; first < c.experts; first += t.threads()) {
    int e = first + threadIdx.x;
    int32_t n = e < c.experts ? count[e] : 0, before = warp_prefix(n);
    if (lane_id() == 31)
      scratch[warp_id()] = before + n;
    __syncthreads();
    for (int w = 0; w < t.threads() / 32; ++w) {
      if (w < warp_id())
        before += scratch[w];
    }
    int32_t total = 0;
    for (int w = 0; w < t.threads() / 32; ++w)
      total += scratch[w];
    if (e < c.experts)
      count[e] = base + before;
    base += total;
    __syncthreads();
  }
  return base;
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (t.few)
    return permute_few<c, t>(args);
  int32_t *start = (int32_t *)shared_memory(), *before = start + c.experts, *scratch = before + c.experts, *own = scratch + 32;
  const int64_t live = args.rows(c).count();
  const uint32_t first_expert = args.first(c);
  const int64_t choices = live * c.top_k;
  const int64_t run_begin = live * blockIdx.x / gridDim.x * c.top_k, run_end = live * (blockIdx.x + 1) / gridDim.x * c.top_k;
  for (int e = threadIdx.x; e < c.experts; e += t.threads())
    start[e] = before[e] = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < choices; i += t.threads()) {
    uint32_t e = local_expert<c>(args, first_expert, i);
    if (e < (uint32_t)c.experts) {
      atomicAdd(start + e, 1);
      if (i < run_begin)
        atomicAdd(before + e, 1);
    }
  }
  __syncthreads();
  int32_t all = start_experts<c, t>(start, scratch);
  for (int e = threadIdx.x; e < c.experts; e += t.threads()) {
    if (blockIdx.x == 0)
      args.offsets(c)[e] = start[e];
    before[e] += start[e]; // from here on the cursor of the expert
  }
  if (blockIdx.x == 0 && threadIdx.x == 0)
    args.offsets(c)[c.experts] = all;
  __syncthreads();

  for (int64_t first = run_begin; first < run_end; first += t.threads()) {
    const int count = least(run_end - first, t.threads());
    const int mine = threadIdx.x;
    uint32_t e = mine < count ? local_expert<c>(args, first_expert, first + mine) : 0xffffffffu;
    own[mine] = (int32_t)e;
    __syncthreads();
    int32_t slot = -1, rank = 0;
    bool held = e < (uint32_t)c.experts;
    if (held) {
      for (int i = 0; i < mine; ++i)
        rank += own[i] == (int32_t)e;
      slot = before[e] + rank;
    }
    __syncthreads();
    if (held)
      atomicAdd(before + e, 1);
    if (mine < count)
      args.slot(c)[place<c>(args, first + mine)] = slot;
    own[mine] = slot;
    __syncthreads();
    for (int i = warp_id(); i < count; i += t.threads() / 32)
      if (own[i] >= 0)
        copy_row<c.type>(element<c.type>(args.out(c), (int64_t)own[i] * c.cols),
                         element<c.type>(args.x, place<c>(args, first + i) / c.top_k * c.ld_x), c.cols, lane_id(), 32);
    __syncthreads();
  }
}

} // namespace k31::kernels::permute
