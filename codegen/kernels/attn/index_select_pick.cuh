// The selection of attn.index_select: the exact top_k of a row's scores, ascending in position.
//
// Scores are unsigned keys of the same order. Three histograms (11, 11, 10 bits) find the smallest selected key and how many of
// its equals are taken; then warps count and write their runs of the positions. `share` blocks of a team have one row, each a
// part of its positions; when there are more rows than blocks, a block has whole rows and meets nobody. Every pass keeps 32 keys
// a thread under way: five reads of a row's scores.
//
// Many rows (wide): one read. A sixteenth of the scores tells from which key on there are about twice top_k of them; those are
// kept in shared memory (index_select_kept.cuh), and if there are top_k or more, all else is done with them. If there are fewer,
// the first digit is counted from memory, and what can be selected then is kept; so where more than fit were to be kept.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/index_select_kept.cuh"

namespace k31::kernels::index_select {

// What is known of a row's smallest selected key.
struct Threshold {
  uint32_t found;  // its digits so far, in place
  int32_t left;    // keys to take among those that share these digits
  int32_t count;   // positions of the row; 0: the row is not scored
  int32_t segment; // of the row
};

template <Config c, Tile t> struct Pick {
  static constexpr int kThreads = t.threads(), kWarps = kThreads / 32, kLoads = 8; // of four keys, a thread
  static constexpr int kCopies = t.wide ? 8 : 1;
  static constexpr int kOfSample = kDigits, kOfUpper = kDigits + 1; // wide: histograms of first digits, of the keys kept first
  static constexpr int kSample = 16;                                // a sample is one key in so many
  static constexpr int kSampledFrom = 4 * c.top_k > 16384 ? 4 * c.top_k : 16384; // positions of a row worth one

  uint32_t *scores;     // [rows, max_context]
  uint32_t *histograms; // [Tile::histograms, rows, bins], of rows that several blocks share
  int32_t *counts;      // [rows, blocks, 2]
  uint32_t *histogram;  // [bins], of this block
  uint32_t *copies;     // wide: [bins, kCopies]: of the first digit, whose bins are few; lanes take turns among copies
  Threshold *state;     // [rows]
  uint64_t *sums;       // [2, warps]
  int32_t *out;         // [rows, top_k]
  int rows, size, share;
  int row, place;                                     // first row of this block, its place among those that share a row
  Kept<t.wide ? t.query_bytes(c) : 0, kThreads> kept; // wide: in the place of the queries, as copies are

  K31_DEVICE void open(int32_t *out, int rows, int member, int size) {
    this->out = out, this->rows = rows, this->size = size;
    share = size > rows ? size / rows : 1;
    row = member / share, place = member % share;
  }
  // Blocks that share rows have one or none, and meet after each phase: `meet` is for all blocks of the team.
  template <class F> K31_DEVICE void select(F meet) {
    const auto meet_sharers = [&] {
      if (share > 1)
        meet();
    };
    for (int r = row; share > 1 ? r == row : r < rows; r += size) {
      const bool mine = r < rows && state[r].count > 0;
      if constexpr (t.wide)
        find_first_digit(r, mine, meet_sharers);
#pragma unroll 1
      for (int digit = t.wide; digit < kDigits; ++digit) {
        if (mine)
          count_digit(r, digit, digit);
        meet_sharers();
        if (mine)
          find_bin(r, digit, digit);
      }
      if (mine)
        count_selected(r);
      meet_sharers();
      if (mine)
        write_selected(r);
    }
  }
  template <class F> K31_DEVICE void find_first_digit(int r, bool mine, const F &meet_sharers) {
    const bool sampled = mine && state[r].count >= kSampledFrom;
    kept.chunks = 0;
    if (sampled)
      count_sample(r);
    meet_sharers();
    uint32_t lowest = 0;
    if (sampled && find(r, kOfSample, (2 * c.top_k + kSample - 1) / kSample, [&](uint32_t bin, uint32_t) { *guess() = bin; }))
      lowest = *guess() << shift_of(0);
    if (lowest) {
      kept.gather(scores_of(r), part(state[r].count), lowest);
      count_digit(r, 0, kOfUpper, lowest);
    }
    meet_sharers();
    const bool found = lowest && find_bin(r, 0, kOfUpper);
    if (mine && !found) {
      kept.chunks = 0;
      count_digit(r, 0, 0);
    }
    meet_sharers();
    if (mine && !found)
      find_bin(r, 0, 0);
    if (mine && !is_kept())
      kept.gather(scores_of(r), part(state[r].count), state[r].found);
  }
  K31_DEVICE bool is_kept() const { return t.wide && kept.chunks > 0; }
  K31_DEVICE uint32_t *guess() const { return (uint32_t *)(sums + kWarps); } // from what bin on keys are kept
  K31_DEVICE uint32_t *scores_of(int r) const { return scores + (int64_t)r * c.max_context; }
  K31_DEVICE uint32_t *histogram_of(int digit, int r) const { return histograms + ((int64_t)digit * t.rows + r) * kBins; }

  // Positions of n that this block counts and writes, and a warp's run of them: `first` is a multiple of 128.
  K31_DEVICE static Part part_of(int first, int end, int number, int parts) {
    const int64_t length = ceil_div(ceil_div(end - first, parts), 128) * 128, from = first + number * length;
    return {(int)(from < end ? from : end), (int)(from + length < end ? from + length : end)};
  }
  K31_DEVICE Part part(int n) const { return part_of(0, n, place, share); }
  K31_DEVICE Part run_of_warp(int n) const {
    const Part p = part(n);
    return part_of(p.first, p.end, warp_id(), kWarps);
  }
  // f(key) for the keys of [p.first, p.end) in turns of `threads` threads, of which this is number `thread`.
  template <class F> K31_DEVICE static void each_key(const uint32_t *keys, Part p, int thread, int threads, F f) {
    for (int base = p.first + thread * 4; base < p.end; base += threads * 4 * kLoads) {
      uint4 v[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u) { // rows are a multiple of 256 keys long
        const int at = base + u * threads * 4;
        v[u] = at < p.end ? __ldcg((const uint4 *)(keys + at)) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const int left = p.end - (base + u * threads * 4);
        const uint32_t key[] = {v[u].x, v[u].y, v[u].z, v[u].w};
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (e < left)
            f(key[e]);
      }
    }
  }

  // Histograms that blocks share, before the scores: the blocks meet in between.
  K31_DEVICE void clear_histograms() const {
    if (share == 1 || row >= rows)
      return;
    for (int i = place * kThreads + threadIdx.x; i < t.histograms() * kBins; i += share * kThreads)
      histogram_of(i / kBins, row)[i % kBins] = 0;
  }
  K31_DEVICE static int shift_of(int digit) { return digit == 0 ? 21 : digit == 1 ? 10 : 0; }
  // Into histogram `number`; wide: keys from `lowest` on.
  K31_DEVICE void count_digit(int r, int digit, int number, uint32_t lowest = 0) const {
    const int shift = shift_of(digit);
    const uint32_t mask = digit == 2 ? 1023 : 2047, known = digit == 0 ? 0 : digit == 1 ? ~0u << 21 : ~0u << 10;
    const uint32_t found = state[r].found;
    count_keys(r, number, digit == 0 && !is_kept(), [&](auto count) {
      // Neighbours often share a bin: runs are counted in registers first.
      uint32_t bin = 0, run = 0;
      const auto one = [&](uint32_t key) {
        if ((key ^ found) & known || (t.wide && key < lowest))
          return;
        const uint32_t b = key >> shift & mask;
        if (b == bin) {
          ++run;
          return;
        }
        if (run)
          count(bin, run);
        bin = b, run = 1;
      };
      if (is_kept())
        kept.each_key(one);
      else
        each_key(scores_of(r), part(state[r].count), threadIdx.x, kThreads, one);
      if (run)
        count(bin, run);
    });
  }
  // One group of 128 neighbouring keys in sixteen.
  K31_DEVICE void count_sample(int r) const {
    count_keys(r, kOfSample, true, [&](auto count) {
      const Part p = part(state[r].count);
      const int groups = (p.end - p.first) / 128;
#pragma unroll 4
      for (int i = warp_id(); i * kSample < groups; i += kWarps) {
        const int group = i * kSample + i % kSample; // not the same place of each sixteen
        if (group >= groups)
          continue;
        const uint4 v = __ldcg((const uint4 *)(scores_of(r) + p.first + group * 128 + lane_id() * 4));
        const uint32_t key[] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int e = 0; e < 4; ++e)
          count(key[e] >> shift_of(0), 1);
      }
    });
  }
  // Histogram `number` of a row: each(count) calls count(bin, keys). Few bins, as of a first digit, take copies, which stand
  // where keys are kept.
  template <class F> K31_DEVICE void count_keys(int r, int number, bool few_bins, F each) const {
    const int of_bin = few_bins ? kCopies : 1;
    uint32_t *bins = of_bin > 1 ? copies : histogram;
    for (int i = threadIdx.x; i < kBins * of_bin; i += kThreads)
      bins[i] = 0;
    __syncthreads();
    uint32_t *mine = bins + (of_bin > 1 ? lane_id() % kCopies : 0);
    each([&](uint32_t bin, uint32_t keys) { atomicAdd(&mine[bin * of_bin], keys); });
    __syncthreads();
    if (of_bin > 1) {
      for (int i = threadIdx.x; i < kBins; i += kThreads) {
        uint32_t sum = 0;
#pragma unroll
        for (int copy = 0; copy < kCopies; ++copy)
          sum += copies[i * kCopies + copy];
        histogram[i] = sum;
      }
      __syncthreads();
    }
    if (share == 1)
      return;
    uint32_t *all = histogram_of(number, r);
    for (int i = threadIdx.x; i < kBins; i += kThreads)
      if (histogram[i])
        atomicAdd(&all[i], histogram[i]);
    __syncthreads();
  }
  // Finds the bin that holds the `left`-th highest key of the row; every block of the row does the same. Returns whether so many
  // were counted; if not, nothing changes.
  K31_DEVICE bool find_bin(int r, int digit, int number) const {
    return find(r, number, (uint32_t)state[r].left, [&](uint32_t bin, uint32_t left) {
      state[r].found |= bin << shift_of(digit);
      state[r].left = (int32_t)left;
    });
  }
  // found(bin, how many of its keys are wanted), in one thread.
  template <class F> K31_DEVICE bool find(int r, int number, uint32_t left, F found) const {
    constexpr int kEach = kBins / kThreads;
    const uint32_t *all = histogram_of(number, r);
    const int top = kBins - 1 - (int)threadIdx.x * kEach; // this thread's bins, from the highest down
    uint32_t mine[kEach], sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      sum += mine[i] = share == 1 ? histogram[top - i] : __ldcg(all + top - i);
    uint32_t above = prefix(sum);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (above < left && left <= above + mine[i])
        found(top - i, left - above);
      above += mine[i];
    }
    return __syncthreads_or(threadIdx.x == kThreads - 1 && above >= left);
  }
  // Sum over the lower threads of the block.
  template <class V> K31_DEVICE V prefix(V v) const {
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
  // Keys above and equal to the smallest selected one: of each warp's run for this block, of the block for the others.
  K31_DEVICE void count_selected(int r) const {
    const uint32_t lowest = state[r].found;
    if (is_kept()) {
      uint32_t total;
      kept.count(lowest, [&](uint32_t v) { return prefix(v); }, total);
      if (share > 1 && threadIdx.x == kThreads - 1)
        publish(r, (int32_t)(total >> 16), (int32_t)(total & 0xffff));
      return;
    }
    int32_t above = 0, equal = 0;
    each_key(scores_of(r), run_of_warp(state[r].count), lane_id(), 32,
             [&](uint32_t key) { above += key > lowest, equal += key == lowest; });
    const uint64_t total = warp_sum((uint64_t)above << 32 | (uint32_t)equal);
    uint64_t *totals = sums + kWarps;
    if (lane_id() == 0)
      totals[warp_id()] = total;
    __syncthreads();
    if (share > 1 && threadIdx.x == 0) {
      uint64_t all = 0;
      for (int w = 0; w < kWarps; ++w)
        all += totals[w];
      publish(r, (int32_t)(all >> 32), (int32_t)all);
    }
  }
  K31_DEVICE void publish(int r, int32_t above, int32_t equal) const { // for the blocks behind this one
    counts[(r * t.blocks + place) * 2] = above, counts[(r * t.blocks + place) * 2 + 1] = equal;
  }
  // Positions, ascending: those above, and the first `left` of the equal ones.
  K31_DEVICE void write_selected(int r) const {
    uint64_t before = 0; // of lower blocks and warps: above << 32 | equal
    if (share > 1) {
      for (int m = threadIdx.x; m < place; m += kThreads)
        before += (uint64_t)__ldcg(counts + (r * t.blocks + m) * 2) << 32 | (uint32_t)__ldcg(counts + (r * t.blocks + m) * 2 + 1);
      before = block_sum<kThreads>(before, sums);
    }
    const uint32_t *keys = scores_of(r), lowest = state[r].found;
    const int32_t ties = state[r].left;
    int32_t *to = out + (int64_t)r * c.top_k;
    if (is_kept()) {
      kept.write(lowest, ties, (int32_t)(before >> 32), (int32_t)before, to);
      __syncthreads();
      return;
    }
    for (int w = 0; w < warp_id(); ++w)
      before += sums[kWarps + w];
    int32_t above = (int32_t)(before >> 32), equal = (int32_t)before;
    const Part p = run_of_warp(state[r].count);
    for (int base = p.first; base < p.end; base += 128 * kLoads) {
      uint4 v[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const int at = base + u * 128 + lane_id() * 4;
        v[u] = at < p.end ? __ldcg((const uint4 *)(keys + at)) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int u = 0; u < kLoads; ++u) {
        const int at = base + u * 128 + lane_id() * 4;
        const uint32_t key[] = {v[u].x, v[u].y, v[u].z, v[u].w};
        uint32_t mine = 0; // above << 16 | equal
#pragma unroll
        for (int e = 0; e < 4; ++e)
          mine += at + e < p.end ? (uint32_t)(key[e] > lowest) << 16 | (uint32_t)(key[e] == lowest) : 0;
        if (!__any_sync(kAllLanes, mine))
          continue;
        const uint32_t lower = warp_prefix(mine), all = __shfl_sync(kAllLanes, lower + mine, 31);
        int32_t up = above + (int32_t)(lower >> 16), same = equal + (int32_t)(lower & 0xffff);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (at + e >= p.end)
            continue;
          if (key[e] > lowest || (key[e] == lowest && same < ties))
            to[up + (same < ties ? same : ties)] = at + e;
          up += key[e] > lowest, same += key[e] == lowest;
        }
        above += (int32_t)(all >> 16), equal += (int32_t)(all & 0xffff);
      }
    }
    __syncthreads(); // the next row takes the sums
  }
};

} // namespace k31::kernels::index_select
