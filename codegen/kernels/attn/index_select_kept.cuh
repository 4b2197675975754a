// The keys of a row that can be selected, in shared memory, each with its position.
//
// Digits, counts and positions then come from here and not from memory. Warps take chunks of 1024 positions, whose entries stay
// in order; where a chunk's entries begin follows no order. More entries than there is room for (many equal keys) are not kept.
#pragma once
#include "codegen/kernels/attn/index_select.tile.h"
#include "codegen/kernels/common/reduce.cuh"

namespace k31::kernels::index_select {

// Positions [first, end) of a row.
struct Part {
  int first, end;
};

template <int bytes, int threads> struct Kept {
  static constexpr int kChunk = 1024, kLoads = kChunk / 128, kChunks = 2 * threads, kWarps = threads / 32;
  static constexpr int kEntries = (bytes - 8 * kChunks - 16) / 8;
  static_assert(kEntries < 1 << 16, "above and equal share a word");

  uint32_t *keys;     // [entries]
  int32_t *positions; // [entries]
  uint32_t *places;   // [chunks] first entry << 11 | entries
  uint32_t *sums;     // [chunks] selected, of chunks before: above << 16 | equal
  int *used;          // entries
  int chunks = 0;     // 0: nothing is kept

  Kept() = default;
  K31_DEVICE explicit Kept(void *at)
      : keys((uint32_t *)at), positions((int32_t *)(keys + kEntries)), places((uint32_t *)(positions + kEntries)),
        sums(places + kChunks), used((int *)(sums + kChunks)) {}

  // Keeps the keys of `row` from `lowest` on, if they fit. All threads, as everything here.
  K31_DEVICE void gather(const uint32_t *row, Part p, uint32_t lowest) {
    const int count = (p.end - p.first + kChunk - 1) / kChunk;
    chunks = 0;
    if (count > kChunks)
      return;
    if (threadIdx.x == 0)
      *used = 0;
    __syncthreads();
    uint4 next[kLoads];
    load_chunk(row, p, warp_id(), next);
#pragma unroll 1
    for (int chunk = warp_id(); chunk < count; chunk += kWarps) {
      uint4 v[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u)
        v[u] = next[u];
      load_chunk(row, p, chunk + kWarps, next); // on its way meanwhile
      gather_chunk(v, p, lowest, chunk);
    }
    __syncthreads();
    if (*used <= kEntries)
      chunks = count;
  }
  template <class F> K31_DEVICE void each_key(F f) const {
    for (int i = threadIdx.x; i < *used; i += threads)
      f(keys[i]);
  }
  // Counts keys above `lowest` and equal to it, chunk by chunk; returns the sum of those before this thread's two chunks.
  // prefix(v): the sum of v over lower threads. The last thread has all in `total`.
  template <class Prefix> K31_DEVICE void count(uint32_t lowest, Prefix prefix, uint32_t &total) const {
#pragma unroll 1
    for (int chunk = warp_id(); chunk < chunks; chunk += kWarps) {
      const int first = places[chunk] >> 11, end = first + (places[chunk] & 2047);
      uint32_t found = 0;
      for (int i = first + lane_id(); i < end; i += 32)
        found += (uint32_t)(keys[i] > lowest) << 16 | (uint32_t)(keys[i] == lowest);
      found = warp_sum(found);
      if (lane_id() == 0)
        sums[chunk] = found;
    }
    __syncthreads();
    uint32_t *mine = sums + 2 * threadIdx.x;
    const uint32_t one = 2 * threadIdx.x < chunks ? mine[0] : 0, two = 2 * threadIdx.x + 1 < chunks ? mine[1] : 0;
    const uint32_t before = prefix(one + two);
    mine[0] = before, mine[1] = before + one;
    total = before + one + two;
    __syncthreads();
  }
  // Writes the positions of the keys above `lowest` and of the first `ties` equal ones; above and equal: those of other blocks
  // in front.
  K31_DEVICE void write(uint32_t lowest, int32_t ties, int32_t above, int32_t equal, int32_t *to) const {
    const uint32_t lower = (1u << lane_id()) - 1;
#pragma unroll 1
    for (int chunk = warp_id(); chunk < chunks; chunk += kWarps) {
      const int first = places[chunk] >> 11, end = first + (places[chunk] & 2047);
      int32_t up = above + (int32_t)(sums[chunk] >> 16), same = equal + (int32_t)(sums[chunk] & 0xffff);
      for (int base = first; base < end; base += 32) {
        const int i = base + lane_id();
        const uint32_t key = i < end ? keys[i] : 0;
        const bool is_above = i < end && key > lowest, is_equal = i < end && key == lowest;
        const uint32_t all_above = __ballot_sync(kAllLanes, is_above), all_equal = __ballot_sync(kAllLanes, is_equal);
        const int32_t u = up + __popc(all_above & lower), s = same + __popc(all_equal & lower);
        if (is_above || (is_equal && s < ties))
          to[u + (s < ties ? s : ties)] = positions[i];
        up += __popc(all_above), same += __popc(all_equal);
      }
    }
  }

private:
  K31_DEVICE static void load_chunk(const uint32_t *row, Part p, int chunk, uint4 (&v)[kLoads]) {
    const int base = p.first + chunk * kChunk + lane_id() * 4;
#pragma unroll
    for (int u = 0; u < kLoads; ++u) // rows are a multiple of 256 keys long
      v[u] = base + u * 128 < p.end ? __ldcg((const uint4 *)(row + base + u * 128)) : make_uint4(0, 0, 0, 0);
  }
  K31_DEVICE void gather_chunk(const uint4 (&v)[kLoads], Part p, uint32_t lowest, int chunk) const {
    const int base = p.first + chunk * kChunk + lane_id() * 4;
    uint32_t kept = 0; // a bit a key
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int left = p.end - (base + u * 128);
      const uint32_t key[] = {v[u].x, v[u].y, v[u].z, v[u].w};
#pragma unroll
      for (int e = 0; e < 4; ++e)
        kept |= (uint32_t)(key[e] >= lowest && e < left) << (4 * u + e);
    }
    const int count = warp_sum(__popc(kept));
    int first = lane_id() == 0 ? atomicAdd(used, count) : 0;
    first = __shfl_sync(kAllLanes, first, 0);
    if (lane_id() == 0)
      places[chunk] = (uint32_t)first << 11 | (uint32_t)count;
    if (first + count > kEntries)
      return;
    const uint32_t lower = (1u << lane_id()) - 1;
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const uint32_t key[] = {v[u].x, v[u].y, v[u].z, v[u].w};
      int to = first;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const uint32_t all = __ballot_sync(kAllLanes, kept >> (4 * u + e) & 1);
        to += __popc(all & lower), first += __popc(all);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (kept >> (4 * u + e) & 1)
          keys[to] = key[e], positions[to++] = base + u * 128 + e;
    }
  }
};

} // namespace k31::kernels::index_select
