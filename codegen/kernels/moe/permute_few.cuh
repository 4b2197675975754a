// moe.permute of few choices: no counters and no prefix sums, one meeting of the block.
//
// A key is (local expert, number of the choice). The slot of a choice is the number of smaller keys, and offsets[e] the number of
// keys below (e, 0). Every block lists the keys of the choices that are held here, in any order; then each warp takes a choice or
// an offset, counts, and moves the row. With several ranks the choices of all rows of the capacity are looked at and those of
// dead rows passed over: one latency instead of a search for each live row.
#pragma once
#include "codegen/kernels/common/reduce.cuh"
#include "codegen/kernels/moe/permute.tile.h"

namespace k31::kernels::permute {

constexpr uint32_t kNoKey = 0xffffffffu;

template <Config c> struct Choices {
  const Args &args;
  const uint32_t first_expert = args.first(c);
  const int32_t rows = c.groups == 1 ? *args.live : c.groups * c.capacity; // some of them dead with several ranks

  K31_DEVICE int32_t count() const { return rows * c.top_k; }
  K31_DEVICE bool alive(int32_t choice) const {
    if constexpr (c.groups == 1)
      return true;
    const int32_t row = choice / c.top_k;
    return row % c.capacity < args.live[row / c.capacity];
  }
  K31_DEVICE uint32_t key(int32_t choice) const {
    const uint32_t e = (uint32_t)args.ids[choice] - first_expert;
    return alive(choice) && e < (uint32_t)c.experts ? e << kChoiceBits | choice : kNoKey;
  }
};

template <Config c, Tile t> K31_DEVICE void permute_few(const Args &args) {
  constexpr int kThreads = t.threads(), kWarps = kThreads / 32, kAhead = 4;
  int32_t *length = (int32_t *)shared_memory();
  uint32_t *keys = (uint32_t *)(length + 1); // [choices] of those held here
  const Choices<c> choices{args};
  const int32_t count = choices.count();
  if (threadIdx.x == 0)
    *length = 0;
  __syncthreads();
  for (int32_t base = 0; base < count; base += kAhead * kThreads) {
    uint32_t key[kAhead];
    int32_t hits = 0;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int32_t choice = base + kThreads * i + threadIdx.x;
      key[i] = choice < count ? choices.key(choice) : kNoKey;
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      hits += key[i] != kNoKey;
    int32_t at = claim(hits, length);
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (key[i] != kNoKey)
        keys[at++] = key[i];
  }
  __syncthreads();

  const int32_t held = *length;
  for (int32_t task = blockIdx.x * kWarps + warp_id(); task < count + c.experts + 1; task += gridDim.x * kWarps) {
    const int32_t expert = task - count; // of an offset, when not negative
    if (expert < 0 && !choices.alive(task))
      continue;
    const uint32_t own = expert < 0 ? choices.key(task) : (uint32_t)expert << kChoiceBits;
    uint32_t before = 0;
#pragma unroll 4
    for (int32_t i = lane_id(); i < held; i += 32)
      before += keys[i] < own;
    const int32_t place = (int32_t)__reduce_add_sync(kAllLanes, before);
    if (lane_id() == 0) {
      if (expert < 0)
        args.slot(c)[task] = own == kNoKey ? -1 : place;
      else
        args.offsets(c)[expert] = place;
    }
    if (expert < 0 && own != kNoKey)
      copy_row_at_once<c.type, c.cols>(element<c.type>(args.out(c), (int64_t)place * c.cols),
                                       element<c.type>(args.x, (int64_t)(task / c.top_k) * c.ld_x), lane_id());
  }
}

} // namespace k31::kernels::permute
