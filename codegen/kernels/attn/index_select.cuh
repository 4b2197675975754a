// CUDA kernel of attn.index_select: teams of blocks score a block of rows, then select by an exact radix search, in one launch.
//
// Scores of few rows: a warp keeps 32 keys as the A operand in registers, straight from memory, and meets the queries of all rows
// of the row block, which stand in shared memory in the order of the B fragments; so a key is read once a row block. A lane's 16
// bytes (8 bytes of codes) are 8 neighbouring values of a key: the order of k is free as long as A and B agree. Sums over heads
// stay in lanes. Many rows: index_select_wide.cuh. The selection: index_select_pick.cuh. Between the phases the blocks of a team
// meet at a barrier in device memory, so all blocks of the grid must be on the device at once; its counters come back to rest by
// themselves. Rows of no more than top_k positions are not scored.
#pragma once
#include "codegen/kernels/attn/index_select_pick.cuh"
#include "codegen/kernels/attn/index_select_wide.cuh"
#include "codegen/kernels/attn/meet.cuh"
#include "codegen/kernels/common/mma.cuh"

namespace k31::kernels::index_select {

// Where team `team` meets; zero when the module is loaded.
template <Config c, Tile t> K31_DEVICE Meeting &meeting_of(int team) {
  static __device__ Meeting all[t.blocks];
  return all[team];
}

template <Config c, Tile t> struct Team {
  static constexpr int kHeads = t.heads(c), kDim = c.head_dim, kThreads = t.threads();
  static constexpr int kGroups = kHeads / 8, kSteps = kDim / 32; // of the products
  static constexpr bool kCoded = c.cache_type == DType::i8;

  const Args &args;
  int member, size; // this block, blocks of the team
  char *query;
  float *weights; // [rows, heads], times head_scale
  Group *groups;  // wide
  Pick<c, t> pick;
  int64_t begin; // first row of the row block
  int rows;

  K31_DEVICE Team(const Args &args, int team, int member, int size) : args(args), member(member), size(size) {
    char *scratch = (char *)args.workspace + team * team_bytes(c, t);
    pick.scores = (uint32_t *)scratch;
    pick.histograms = (uint32_t *)(scratch + score_bytes(c, t));
    pick.counts = (int32_t *)(pick.histograms + t.histograms() * t.rows * kBins);
    char *shared = (char *)shared_memory();
    query = shared;
    weights = (float *)(shared + t.query_bytes(c));
    pick.histogram = (uint32_t *)((char *)weights + t.weight_bytes(c));
    pick.copies = (uint32_t *)query; // there are no queries any more when rows are selected
    if constexpr (t.wide)
      pick.kept = decltype(pick.kept)(query);
    pick.state = (Threshold *)(pick.histogram + kBins);
    groups = (Group *)(pick.state + t.rows);
    pick.sums = (uint64_t *)((char *)groups + (t.wide ? t.rows * sizeof(Group) : 0));
  }

  // Sets up the state of the row block from row `row` on; rows that need no scores are written at once. Returns whether any row
  // needs them.
  K31_DEVICE bool open(int64_t row, int live) {
    begin = row, rows = live;
    bool scored = false;
    __syncthreads(); // the row block before is done with the state
    for (int r = threadIdx.x; r < rows; r += kThreads) {
      const int32_t segment = args.batch.row_segment[begin + r];
      const int n = (int)position_of(args.batch.segments[segment], begin + r) + 1;
      scored |= n > c.top_k;
      pick.state[r] = {0, c.top_k, n > c.top_k ? n : 0, segment};
    }
    scored = __syncthreads_or(scored);
    for (int r = member; r < rows; r += size) {
      if (pick.state[r].count > 0)
        continue;
      const int n = (int)position_of(args.batch.segments[pick.state[r].segment], begin + r) + 1;
      for (int i = threadIdx.x; i < c.top_k; i += kThreads)
        args.out[(begin + r) * c.top_k + i] = i < n ? i : -1;
    }
    pick.open(args.out + begin * c.top_k, rows, member, size);
    return scored;
  }

  // ---- scores
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
  K31_DEVICE const char *keys_of(int block, int i) const {
    const int64_t key = (int64_t)block * kBlockTokens + i;
    return (const char *)args.pages + (kCoded ? key_at(key, kDim) : key * kDim * 2);
  }
  // 32 keys of the warp from position `first` on, codes with their scales, against the rows [from, to) of one segment.
  K31_DEVICE void score_keys(const char *keys, const float *scales, int first, int from, int to) const {
    const int lane = lane_id(), g = lane / 4, q = lane % 4;
    const float scale = kCoded ? scales[q * 8 + g] : 1; // of the key whose score this lane writes
    uint4 a[2][2][kSteps];                              // [16 keys, rows g and g + 8]
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
          const int key = m * 16 + half * 8 + g;
          if constexpr (kCoded)
            a[m][half][k] = decode_integers(*(const uint2 *)(keys + key * kDim + k * 32 + q * 8));
          else
            a[m][half][k] = *(const uint4 *)(keys + key * kDim * 2 + k * 64 + q * 16);
        }
    for (int r = from; r < to; ++r) {
      const int n = pick.state[r].count;
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
        pick.scores_of(r)[at] = ordered_score(kCoded ? mine * scale : mine);
    }
  }
  // Value d of a key, without its scale.
  K31_DEVICE float key_value(int64_t key, int d) const {
    if constexpr (kCoded)
      return (float)((const signed char *)args.pages)[key_at(key, kDim) + d];
    else
      return load<c.cache_type>(args.pages, key * kDim + d);
  }
  // One key a thread, plain products with one row.
  K31_DEVICE void score_plain(const int32_t *table, int page, int r) const {
    const int n = pick.state[r].count;
    for (int i = threadIdx.x; i < kBlockTokens && page * kBlockTokens + i < n; i += kThreads) {
      const int64_t key = (int64_t)table[page] * kBlockTokens + i;
      float total = 0;
      for (int h = 0; h < c.heads; ++h) {
        float dot = 0;
        for (int d = 0; d < kDim; ++d)
          dot += ((const float *)query)[h * kDim + d] * key_value(key, d);
        dot *= c.scale;
        total += (dot < 0 ? 0 : dot) * weights[r * kHeads + h];
      }
      if constexpr (kCoded)
        total *= *(const float *)((const char *)args.pages + key_scale_at(key, kDim));
      pick.scores_of(r)[page * kBlockTokens + i] = ordered_score(total);
    }
  }
  // Pages of the row block, segment by segment, go to the blocks of the team in turns.
  K31_DEVICE void score_few() {
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
      const int n = pick.state[to - 1].count, pages = (int)ceil_div(n, kBlockTokens); // later rows see more
      const int turn = (member - items % size + size) % size;
      items += pages;
      if constexpr (t.products(c)) {
        for (int page = turn; page < pages; page += size)
          for (int i = warp_id() * 32; i < kBlockTokens && page * kBlockTokens + i < n; i += kThreads)
            score_keys(keys_of(table[page], i),
                       (const float *)((const char *)args.pages + key_scale_at((int64_t)table[page] * kBlockTokens + i, kDim)),
                       page * kBlockTokens + i, from, to);
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

  // ---- many rows
  // Rows of one segment in groups; returns their number, and how many tiles they have together.
  K31_DEVICE int find_groups(int &tiles) {
    int *found = (int *)pick.sums;
    if (threadIdx.x == 0) {
      int count = 0, all = 0;
      for (int r = 0, to; r < rows; r = to) {
        const int32_t segment = pick.state[r].segment;
        for (to = r + 1; to < rows && to - r < t.group(c) && pick.state[to].segment == segment; ++to) {
        }
        groups[count++] = {r, to - r, segment, all};
        all += (int)ceil_div(pick.state[to - 1].count, kWideKeys); // later rows see more
      }
      found[0] = count, found[1] = all;
    }
    __syncthreads();
    const int count = found[0];
    tiles = found[1];
    __syncthreads();
    return count;
  }
  K31_DEVICE void score_many() {
    unsigned char *at = (unsigned char *)query;
    const Wide<c, t> wide{args, at, at + kWideColumns * kDim * 2, weights, &pick.state[0].count, pick.scores};
    int tiles;
    const int count = find_groups(tiles);
    const int first = (int)((int64_t)tiles * member / size), last = (int)((int64_t)tiles * (member + 1) / size);
    for (int g = 0; g < count; ++g) {
      const Group group = groups[g];
      const int end = g + 1 < count ? groups[g + 1].begin : tiles;
      const int from = first > group.begin ? first : group.begin, to = last < end ? last : end;
      if (from < to)
        wide.score(group, begin + group.first, from - group.begin, to - group.begin, weights);
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
  auto &pick = x.pick;
  for (int64_t block = team; block < blocks; block += teams) {
    if (!x.open(block * t.rows, least(t.rows, live - block * t.rows)))
      continue;
    pick.clear_histograms();
    if constexpr (t.wide)
      x.score_many();
    else
      x.score_few();
    meet(meeting, size);
    pick.select([&] { meet(meeting, size); });
    meet(meeting, size); // the next row block takes the same scratch
  }
}

} // namespace k31::kernels::index_select
