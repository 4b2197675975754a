// CUDA kernel of attn.index_select: teams of blocks score a block of rows, then select by an exact radix search, in one launch.
//
// Scores: a warp keeps 32 keys as the A operand in registers, straight from memory, and meets the queries of all rows of the row
// block, which stand in shared memory in the order of the B fragments; so a key is read once a row block. A lane's 16 bytes
// are 8 neighbouring values of a key: the order of k is free as long as A and B agree. Sums over heads stay in lanes.
// Scores become unsigned keys of the same order. Selection: three histograms (11, 11, 10 bits) find the smallest selected key and
// how many of its equals are taken; each block counts and writes its part of the positions, in ascending order.
// Between the phases the blocks of a team meet at a barrier in device memory, so all blocks of the grid must be on the device
// at once; its counters come back to rest by themselves. Rows of no more than top_k positions are not scored.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/index_select.tile.h"
#include "codegen/kernels/attn/meet.cuh"
#include "codegen/kernels/common/mma.cuh"

namespace k31::kernels::index_select {

// Where team `team` meets; zero when the module is loaded.
template <Config c, Tile t> K31_DEVICE Meeting &meeting_of(int team) {
  static __device__ Meeting all[t.blocks];
  return all[team];
}

// What is known of a row's smallest selected key.
struct Threshold {
  uint32_t found; // its digits so far, in place
  int32_t left;   // keys to take among those that share these digits
  int32_t count;  // positions of the row; 0: the row is not scored
  int32_t unused;
};

// Unsigned, of the same order; NaN is the lowest; -0.0 becomes +0.0.
K31_DEVICE uint32_t ordered_score(float v) {
  v += 0.0f;
  return v == v ? ordered_bits(v) : 0;
}

template <Config c, Tile t> struct Team {
  static constexpr int kHeads = t.heads(c), kDim = c.head_dim, kThreads = t.threads(), kWarps = kThreads / 32;
  static constexpr int kGroups = kHeads / 8, kSteps = kDim / 32; // of the products

  const Args &args;
  int member, size;     // this block, blocks of the team
  uint32_t *scores;     // [rows, max_context]
  uint32_t *histograms; // [digits, rows, bins]
  int32_t *counts;      // [rows, blocks, 2]
  char *query;
  float *weights;      // [rows, heads], times head_scale
  uint32_t *histogram; // [bins]
  Threshold *state;    // [rows]
  uint64_t *sums;      // [warps]
  int64_t begin;       // first row of the row block
  int rows;

  K31_DEVICE Team(const Args &args, int team, int member, int size) : args(args), member(member), size(size) {
    char *scratch = (char *)args.workspace + team * team_bytes(c, t);
    scores = (uint32_t *)scratch;
    histograms = (uint32_t *)(scratch + score_bytes(c, t));
    counts = (int32_t *)(histograms + kDigits * t.rows * kBins);
    char *shared = (char *)shared_memory();
    query = shared;
    weights = (float *)(shared + t.query_bytes(c));
    histogram = (uint32_t *)((char *)weights + (t.rows * kHeads * 4 + 15) / 16 * 16);
    state = (Threshold *)(histogram + kBins);
    sums = (uint64_t *)(state + t.rows);
  }

  // Positions [first, end) of n that this block counts and writes; first is a multiple of four.
  struct Part {
    int first, end;
  };
  K31_DEVICE Part part(int n) const {
    const int length = (int)ceil_div(ceil_div(n, size), 4) * 4;
    const int64_t first = (int64_t)member * length;
    return {(int)(first < n ? first : n), (int)(first + length < n ? first + length : n)};
  }
  K31_DEVICE uint32_t *histogram_of(int digit, int row) const { return histograms + ((int64_t)digit * t.rows + row) * kBins; }
  K31_DEVICE const uint32_t *scores_of(int row) const { return scores + (int64_t)row * c.max_context; }

  // Sets up the row block's state; rows that need no scores are written at once. Returns whether any row needs them.
  K31_DEVICE bool open() {
    int scored = 0;
    for (int r = 0; r < rows; ++r) {
      const int64_t row = begin + r;
      const int n = (int)position_of(args.batch.segments[args.batch.row_segment[row]], row) + 1;
      const bool all = n <= c.top_k;
      scored += !all;
      if (threadIdx.x == 0)
        state[r] = {0, c.top_k, all ? 0 : n, 0};
      if (all && r % size == member)
        for (int i = threadIdx.x; i < c.top_k; i += kThreads)
          args.out[row * c.top_k + i] = i < n ? i : -1;
    }
    __syncthreads();
    return scored > 0;
  }

  // ---- scores
  K31_DEVICE void clear_histograms() const {
    for (int i = member * kThreads + threadIdx.x; i < kDigits * t.rows * kBins; i += size * kThreads)
      histograms[i] = 0;
  }
  K31_DEVICE void load_weights() {
    for (int i = threadIdx.x; i < rows * kHeads; i += kThreads) {
      const int r = i / kHeads, h = i % kHeads;
      weights[i] =
          h < c.heads ? load<c.w_type>(args.w, (begin + r) * c.ld_w + h) * c.head_scale : 0; // padded heads count nothing
    }
  }
  // Queries as B fragments: [row, group of 8 heads, 32 values, lane] words of 16 bytes.
  K31_DEVICE void load_fragments() {
    const bool vectors = aligned16(args.q) && c.ld_q % 8 == 0;
    for (int i = threadIdx.x; i < rows * kGroups * kSteps * 32; i += kThreads) {
      const int lane = i % 32, step = i / 32 % kSteps, group = i / (32 * kSteps) % kGroups, r = i / (32 * kSteps * kGroups);
      const int head = group * 8 + lane / 4, d = step * 32 + lane % 4 * 8;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (head < c.heads) {
        const uint16_t *from = (const uint16_t *)args.q + (begin + r) * c.ld_q + head * kDim + d;
        if (vectors) {
          v = *(const uint4 *)from;
        } else {
          v.x = from[0] | (uint32_t)from[1] << 16, v.y = from[2] | (uint32_t)from[3] << 16;
          v.z = from[4] | (uint32_t)from[5] << 16, v.w = from[6] | (uint32_t)from[7] << 16;
        }
      }
      ((uint4 *)query)[i] = v;
    }
  }
  // 32 keys of the warp from position `first` on, against the rows [from, to) of one segment.
  K31_DEVICE void score_keys(const char *keys, int first, int from, int to) const {
    const int lane = lane_id(), g = lane / 4, q = lane % 4;
    uint4 a[2][2][kSteps]; // [16 keys, rows g and g + 8]
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int k = 0; k < kSteps; ++k)
          a[m][half][k] = *(const uint4 *)(keys + (m * 16 + half * 8 + g) * kDim * 2 + k * 64 + q * 16);
    for (int r = from; r < to; ++r) {
      const int n = state[r].count;
      if (first >= n)
        continue;
      const uint4 *b = (const uint4 *)query + r * kGroups * kSteps * 32 + lane;
      const float *w = weights + r * kHeads + 2 * q;
      float total[2][2] = {{0, 0}, {0, 0}};
#pragma unroll 2
      for (int group = 0; group < kGroups; ++group) {
        float acc[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
          const uint4 v = b[(group * kSteps + k) * 32];
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            mma_bf16(acc[m], a[m][0][k].x, a[m][1][k].x, a[m][0][k].y, a[m][1][k].y, v.x, v.y);
            mma_bf16(acc[m], a[m][0][k].z, a[m][1][k].z, a[m][0][k].w, a[m][1][k].w, v.z, v.w);
          }
        }
        const float w0 = w[group * 8], w1 = w[group * 8 + 1];
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float x = acc[m][2 * half] * c.scale, y = acc[m][2 * half + 1] * c.scale;
            total[m][half] += (x < 0 ? 0 : x) * w0 + (y < 0 ? 0 : y) * w1; // NaN stays
          }
      }
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          total[m][half] = warp_sum<4>(total[m][half]);
      // Lane q of four writes one of their four keys: 32 neighbouring scores a warp.
      const float mine = q == 0 ? total[0][0] : q == 1 ? total[0][1] : q == 2 ? total[1][0] : total[1][1];
      const int at = first + q * 8 + g;
      if (at < n)
        scores[(int64_t)r * c.max_context + at] = ordered_score(mine);
    }
  }
  // One key a thread, plain products with one row.
  K31_DEVICE void score_plain(const int32_t *table, int page, int r) const {
    const int n = state[r].count;
    for (int i = threadIdx.x; i < kBlockTokens && page * kBlockTokens + i < n; i += kThreads) {
      const int64_t key = ((int64_t)table[page] * kBlockTokens + i) * kDim;
      float total = 0;
      for (int h = 0; h < c.heads; ++h) {
        float dot = 0;
        for (int d = 0; d < kDim; ++d)
          dot += ((const float *)query)[h * kDim + d] * load<c.cache_type>(args.pages, key + d);
        dot *= c.scale;
        total += (dot < 0 ? 0 : dot) * weights[r * kHeads + h];
      }
      scores[(int64_t)r * c.max_context + page * kBlockTokens + i] = ordered_score(total);
    }
  }
  // Pages of the row block, segment by segment, go to the blocks of the team in turns.
  K31_DEVICE void score() {
    load_weights();
    if constexpr (t.products(c))
      load_fragments();
    __syncthreads();
    int items = 0;
    for (int from = 0, to; from < rows; from = to) {
      const int32_t s = args.batch.row_segment[begin + from];
      const int32_t *table = args.batch.block_table + (int64_t)s * c.blocks;
      for (to = from + 1; to < rows && args.batch.row_segment[begin + to] == s; ++to) {
      }
      const int n = state[to - 1].count, pages = (int)ceil_div(n, kBlockTokens); // later rows see more
      const int turn = (member - items % size + size) % size;
      items += pages;
      if constexpr (t.products(c)) {
        for (int page = turn; page < pages; page += size)
          for (int i = warp_id() * 32; i < kBlockTokens && page * kBlockTokens + i < n; i += kThreads)
            score_keys((const char *)args.pages + ((int64_t)table[page] * kBlockTokens + i) * kDim * 2, page * kBlockTokens + i,
                       from, to);
      } else {
        for (int r = from; r < to; ++r) {
          __syncthreads();
          for (int i = threadIdx.x; i < c.heads * kDim; i += kThreads)
            ((float *)query)[i] = load<c.q_type>(args.q, (begin + r) * c.ld_q + i);
          __syncthreads();
          for (int page = turn; page < pages; page += size)
            score_plain(table, page, r);
        }
      }
    }
  }

  // ---- selection
  template <int digit> K31_DEVICE void count_digit() {
    constexpr int shift = digit == 0 ? 21 : digit == 1 ? 10 : 0, known = digit == 0 ? 32 : digit == 1 ? 21 : 10;
    constexpr uint32_t mask = digit == 2 ? 1023 : 2047;
    for (int r = 0; r < rows; ++r) {
      if (state[r].count == 0)
        continue;
      for (int i = threadIdx.x; i < kBins; i += kThreads)
        histogram[i] = 0;
      __syncthreads();
      const Part p = part(state[r].count);
      const uint32_t *keys = scores_of(r), found = state[r].found;
      // Neighbours often share a bin: runs are counted in registers first.
      uint32_t bin = 0, run = 0;
      for (int i = p.first + threadIdx.x; i < p.end; i += kThreads) {
        const uint32_t key = __ldcg(keys + i);
        if (known < 32 && (key ^ found) >> (known & 31))
          continue;
        const uint32_t b = key >> shift & mask;
        if (b == bin) {
          ++run;
        } else {
          if (run)
            atomicAdd(&histogram[bin], run);
          bin = b, run = 1;
        }
      }
      if (run)
        atomicAdd(&histogram[bin], run);
      __syncthreads();
      uint32_t *all = histogram_of(digit, r);
      for (int i = threadIdx.x; i < kBins; i += kThreads)
        if (histogram[i])
          atomicAdd(&all[i], histogram[i]);
      __syncthreads();
    }
  }
  // Finds the bin that holds the `left`-th highest key of the row; every block does the same.
  template <int digit> K31_DEVICE void find_bin() {
    constexpr int shift = digit == 0 ? 21 : digit == 1 ? 10 : 0, kEach = kBins / kThreads;
    for (int r = 0; r < rows; ++r) {
      if (state[r].count == 0)
        continue;
      const uint32_t *all = histogram_of(digit, r);
      const int top = kBins - 1 - (int)threadIdx.x * kEach; // this thread's bins, from the highest down
      uint32_t mine[kEach], sum = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        sum += mine[i] = __ldcg(all + top - i);
      const uint32_t left = (uint32_t)state[r].left;
      uint32_t above = prefix(sum);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (above < left && left <= above + mine[i]) {
          state[r].found |= (uint32_t)(top - i) << shift;
          state[r].left = (int32_t)(left - above);
        }
        above += mine[i];
      }
      __syncthreads();
    }
  }
  // Sum of the values of lower threads.
  template <class V> K31_DEVICE V prefix(V v) {
    const V before = warp_prefix(v);
    if (lane_id() == 31)
      sums[warp_id()] = before + v;
    __syncthreads();
    V base = 0;
    for (int w = 0; w < warp_id(); ++w)
      base += (V)sums[w];
    __syncthreads();
    return base + before;
  }
  // Keys above and equal to the smallest selected one, in this block's part of each row.
  K31_DEVICE void count_selected() {
    for (int r = 0; r < rows; ++r) {
      if (state[r].count == 0)
        continue;
      const Part p = part(state[r].count);
      const uint32_t *keys = scores_of(r), lowest = state[r].found;
      int32_t above = 0, equal = 0;
      for (int i = p.first + threadIdx.x; i < p.end; i += kThreads) {
        const uint32_t key = __ldcg(keys + i);
        above += key > lowest, equal += key == lowest;
      }
      const uint64_t total = block_sum<kThreads>((uint64_t)above << 32 | (uint32_t)equal, sums);
      if (threadIdx.x == 0) {
        counts[(r * t.blocks + member) * 2] = (int32_t)(total >> 32);
        counts[(r * t.blocks + member) * 2 + 1] = (int32_t)total;
      }
    }
  }
  // Positions, ascending: those above, and the first `left` of the equal ones.
  K31_DEVICE void write_selected() {
    for (int r = 0; r < rows; ++r) {
      if (state[r].count == 0)
        continue;
      uint64_t before = 0; // of lower blocks: above << 32 | equal
      for (int m = threadIdx.x; m < member; m += kThreads)
        before += (uint64_t)__ldcg(counts + (r * t.blocks + m) * 2) << 32 | (uint32_t)__ldcg(counts + (r * t.blocks + m) * 2 + 1);
      before = block_sum<kThreads>(before, sums);
      const Part p = part(state[r].count);
      const uint32_t *keys = scores_of(r), lowest = state[r].found;
      const int32_t ties = state[r].left;
      int32_t *out = args.out + (begin + r) * c.top_k;
      constexpr int kEach = 4;
      for (int base = p.first; base < p.end; base += kThreads * kEach) {
        const int first = base + threadIdx.x * kEach;
        uint32_t key[kEach];
        uint64_t mine = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          key[i] = first + i < p.end ? __ldcg(keys + first + i) : 0;
          mine += first + i < p.end ? (uint64_t)(key[i] > lowest) << 32 | (uint64_t)(key[i] == lowest) : 0;
        }
        const uint64_t lower = prefix(mine);
        int32_t above = (int32_t)((before + lower) >> 32), equal = (int32_t)(before + lower);
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          if (first + i >= p.end)
            continue;
          const int32_t at = above + (equal < ties ? equal : ties);
          if (key[i] > lowest || (key[i] == lowest && equal < ties))
            out[at] = first + i;
          above += key[i] > lowest, equal += key[i] == lowest;
        }
        if (threadIdx.x == kThreads - 1)
          sums[kWarps] = lower + mine;
        __syncthreads();
        before += sums[kWarps];
      }
      __syncthreads();
    }
  }
};

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  const int64_t live = args.batch.counts[0], blocks = ceil_div(live, t.rows);
  if (live == 0)
    return;
  const int teams = least(blocks, least(t.teams, gridDim.x)), size = (int)gridDim.x / teams, team = (int)blockIdx.x / size;
  if (team >= teams)
    return;
  Meeting &meeting = meeting_of<c, t>(team);
  Team<c, t> x(args, team, (int)blockIdx.x % size, size);
  for (int64_t block = team; block < blocks; block += teams) {
    x.begin = block * t.rows;
    x.rows = least(t.rows, live - x.begin);
    const bool scored = x.open();
    if (!scored) {
      __syncthreads();
      continue;
    }
    x.clear_histograms();
    x.score();
    meet(meeting, size);
    x.template count_digit<0>();
    meet(meeting, size);
    x.template find_bin<0>();
    x.template count_digit<1>();
    meet(meeting, size);
    x.template find_bin<1>();
    x.template count_digit<2>();
    meet(meeting, size);
    x.template find_bin<2>();
    x.count_selected();
    meet(meeting, size);
    x.write_selected();
    meet(meeting, size); // the next row block takes the same scratch
  }
}

} // namespace k31::kernels::index_select
