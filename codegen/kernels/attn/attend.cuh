// CUDA kernel of attn.attend: a block takes one (row, group of heads) and walks its keys in tiles with a running maximum.
//
// bf16: a tile of 64 cache rows, dense or gathered, is copied asynchronously to shared memory while the one before is used.
// Scores [heads, 64] are products m16n8k16 cut over four groups of keys and two halves of k; the weights go back to shared memory
// as bf16, and each warp sums its own latent columns for all heads, fp32 in registers. Everything is in base 2. Other types: a
// warp a head, a key at a time, plain fp32 products. Few rows: parts of the keys go to several blocks, which leave sums, maxima
// and totals in the workspace, meet, and merge a share of the result each.
#pragma once
#include "codegen/kernels/attn/attend.tile.h"
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/meet.cuh"
#include "codegen/kernels/common/mma.cuh"

namespace k31::kernels::attend {

constexpr float kLog2e = 1.44269504088896341f, kLn2 = 0.693147180559945309f;
K31_DEVICE float minus_infinity() { return __uint_as_float(0xff800000u); }

template <Config c, Tile t> K31_DEVICE Meeting &meeting_of(int unit) {
  static __device__ Meeting all[t.blocks];
  return all[unit];
}

// Keys of one row: all positions up to its own, or the selected ones.
struct Keys {
  const int32_t *table, *indices;
  int64_t count;
  // Row of the cache, or -1: entry i counts nothing.
  K31_DEVICE int64_t row(int64_t i) const {
    const int64_t position = i >= count ? -1 : indices ? indices[i] : i;
    return position < 0 ? -1 : cache_row(table, position);
  }
};
template <Config c> K31_DEVICE Keys keys_of(const Args &args, int64_t row) {
  const int64_t s = args.batch.row_segment[row];
  const int32_t *table = args.batch.block_table + s * c.blocks;
  if constexpr (c.top_k > 0)
    return {table, (const int32_t *)args.tail[0] + row * c.top_k, c.top_k};
  else
    return {table, nullptr, position_of(args.batch.segments[s], row) + 1};
}
template <Config c> K31_DEVICE void *out_of(const Args &args) { return args.tail[c.top_k > 0 ? 1 : 0]; }
template <Config c> K31_DEVICE float *lse_of(const Args &args) { return (float *)args.tail[c.top_k > 0 ? 2 : 1]; }
template <Config c> K31_DEVICE float *workspace_of(const Args &args) {
  return (float *)args.tail[(c.top_k > 0 ? 1 : 0) + 1 + (c.lse ? 1 : 0)];
}

// No key at all: the result is zero and its log-sum-exp is -inf.
template <Config c> K31_DEVICE float lse_value(float top, float total) {
  return total == 0 ? minus_infinity() : (top + log2f(total)) * kLn2;
}

// The work of a block: entries [first, end) of the keys of `heads` heads of a row.
struct Unit {
  int64_t row, first, end;
  int head, heads;
  float *part; // where sums go that are merged later; null: straight to the result
};

// ---- tensor cores
template <Config c, Tile t> struct Products {
  static constexpr int kGroup = t.group(c), kTiles = kGroup / 16, kWidth = t.width(c), kSteps = kWidth / 16, kKeys = t.keys;
  static constexpr int kWarps = t.threads() / 32, kColumns = c.latent / kWarps, kPairs = kColumns / 16;
  static constexpr int kKeyBytes = t.key_bytes(c), kWeightBytes = t.weight_bytes(), kScores = t.score_width();
  static_assert(kWarps == 8 && kKeys == 64 && kColumns % 16 == 0);

  const Args &args;
  uint4 *query; // A fragments [16 heads, step, lane]
  char *tiles;  // [2, keys] rows
  float *scores;
  char *weights;
  float *top, *total, *change; // [group]
  float *valid;                // [2, keys]: 0, or -inf where an entry counts nothing
  float sums[kTiles][2 * kPairs][4];

  K31_DEVICE Products(const Args &args) : args(args) {
    char *at = (char *)shared_memory();
    query = (uint4 *)at, at += kGroup * kWidth * 2;
    tiles = at, at += 2 * kKeys * kKeyBytes;
    scores = (float *)at, at += kGroup * kScores * 4;
    weights = at, at += kGroup * kWeightBytes;
    top = (float *)at, at += kGroup * 4;
    total = (float *)at, at += kGroup * 4;
    change = (float *)at, at += kGroup * 4;
    valid = (float *)at;
  }

  K31_DEVICE uint32_t query_pair(int64_t row, int head, int heads, int d) const { // values d and d + 1
    if (head >= heads)
      return 0;
    const uint16_t *from = d < c.latent ? (const uint16_t *)args.q_latent + row * c.ld_q + (int64_t)head * c.latent + d
                                        : (const uint16_t *)args.q_shared + row * c.ld_shared + (int64_t)head * c.head_shared +
                                              c.shared_begin + (d - c.latent);
    return from[0] | (uint32_t)from[1] << 16;
  }
  K31_DEVICE void load_query(const Unit &u) {
    for (int i = threadIdx.x; i < kTiles * kSteps * 32; i += t.threads()) {
      const int lane = i % 32, step = i / 32 % kSteps, head = u.head + i / (32 * kSteps) * 16 + lane / 4;
      const int d = step * 16 + lane % 4 * 2, heads = u.head + u.heads;
      query[i] = make_uint4(query_pair(u.row, head, heads, d), query_pair(u.row, head + 8, heads, d),
                            query_pair(u.row, head, heads, d + 8), query_pair(u.row, head + 8, heads, d + 8));
    }
    for (int i = threadIdx.x; i < kGroup; i += t.threads())
      top[i] = minus_infinity(), total[i] = 0;
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int n = 0; n < 2 * kPairs; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sums[m][n][i] = 0;
  }
  // Entries from `first` on start their way into tile `slot`; a warp takes 8 rows.
  K31_DEVICE void start_tile(const Keys &keys, int64_t first, int64_t end, int slot) {
    constexpr int kChunks = kWidth * 2 / 16, kRows = kKeys / kWarps;
    const int lane = lane_id(), warp = warp_id();
    int64_t mine = -1;
    if (lane < kRows) {
      const int64_t entry = first + warp * kRows + lane;
      mine = entry < end ? keys.row(entry) : -1;
      valid[slot * kKeys + warp * kRows + lane] = mine < 0 ? minus_infinity() : 0;
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = __shfl_sync(kAllLanes, mine, r);
      const char *from = (const char *)args.pages + (row < 0 ? 0 : row) * kWidth * 2;
      char *to = tiles + (slot * kKeys + warp * kRows + r) * kKeyBytes;
      for (int i = lane; i < kChunks; i += 32)
        copy_async16(to + i * 16, from + i * 16, row < 0 ? 0 : 16);
    }
    copy_commit();
  }
  // scores [group, keys], not yet scaled. Warps 0..3 take the first half of k, warps 4..7 the second, each 16 keys.
  K31_DEVICE void score(int slot) {
    const int lane = lane_id(), half = warp_id() / 4, key = warp_id() % 4 * 16;
    float acc[kTiles][2][4] = {};
    // Matrices of ldmatrix: keys 0..7 and 8..15 of two groups of 8 values.
    const char *b = tiles + (slot * kKeys + key + lane / 16 * 8 + lane % 8) * kKeyBytes + lane / 8 % 2 * 16;
#pragma unroll 3
    for (int i = 0; i < kSteps / 2; ++i) {
      const int step = half * (kSteps / 2) + i;
      uint32_t k[4];
      load_matrices(k, b + step * 32);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        const uint4 a = query[(m * kSteps + step) * 32 + lane];
        mma_bf16(acc[m][0], a.x, a.y, a.z, a.w, k[0], k[1]);
        mma_bf16(acc[m][1], a.x, a.y, a.z, a.w, k[2], k[3]);
      }
    }
    float *to = scores + lane / 4 * kScores + key + lane % 4 * 2;
    if (half == 1)
      add_scores(acc, to, false);
    __syncthreads();
    if (half == 0)
      add_scores(acc, to, true);
    __syncthreads();
  }
  K31_DEVICE void add_scores(const float (&acc)[kTiles][2][4], float *to, bool add) const {
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float2 *at = (float2 *)(to + (m * 16 + h * 8) * kScores + n * 8);
          float2 v = add ? *at : float2{0, 0};
          v.x += acc[m][n][2 * h], v.y += acc[m][n][2 * h + 1];
          *at = v;
        }
  }
  // The tile's weights as bf16, and what they change in the statistics; a warp takes heads warp, warp + 8, ...
  K31_DEVICE void softmax(int slot) {
    const int lane = lane_id();
    const float2 bias = *(const float2 *)(valid + slot * kKeys + 2 * lane);
    for (int h = warp_id(); h < kGroup; h += kWarps) {
      float2 s = *(const float2 *)(scores + h * kScores + 2 * lane);
      s.x = s.x * (c.scale * kLog2e) + bias.x, s.y = s.y * (c.scale * kLog2e) + bias.y;
      const float before = top[h], now = fmaxf(before, warp_max(fmaxf(s.x, s.y)));
      const float base = now == minus_infinity() ? 0 : now; // nothing yet: all weights are exp2(-inf)
      const uint32_t pair = pack_bf16(exp2f(s.x - base), exp2f(s.y - base));
      *(uint32_t *)(weights + h * kWeightBytes + lane * 4) = pair;
      const float sum = warp_sum(bf16_low(pair) + bf16_high(pair)); // of the weights as they are used
      __syncwarp();
      if (lane == 0) {
        const float factor = exp2f(before - base);
        change[h] = factor, top[h] = now, total[h] = total[h] * factor + sum;
      }
    }
    __syncthreads();
  }
  K31_DEVICE void accumulate(int slot) {
    const int lane = lane_id();
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const float low = change[m * 16 + lane / 4], high = change[m * 16 + 8 + lane / 4];
#pragma unroll
      for (int n = 0; n < 2 * kPairs; ++n)
        sums[m][n][0] *= low, sums[m][n][1] *= low, sums[m][n][2] *= high, sums[m][n][3] *= high;
    }
    const char *a = weights + (lane / 8 % 2 * 8 + lane % 8) * kWeightBytes + lane / 16 * 16;
    const char *b = tiles + (slot * kKeys + lane / 8 % 2 * 8 + lane % 8) * kKeyBytes + (warp_id() * kColumns + lane / 16 * 8) * 2;
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t p[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
        load_matrices(p[m], a + m * 16 * kWeightBytes + step * 32);
#pragma unroll
      for (int n = 0; n < kPairs; ++n) {
        uint32_t v[4];
        load_matrices_transposed(v, b + step * 16 * kKeyBytes + n * 32);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          mma_bf16(sums[m][2 * n], p[m][0], p[m][1], p[m][2], p[m][3], v[0], v[1]);
          mma_bf16(sums[m][2 * n + 1], p[m][0], p[m][1], p[m][2], p[m][3], v[2], v[3]);
        }
      }
    }
  }
  K31_DEVICE void finish(const Unit &u) {
    const int lane = lane_id();
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int h = m * 16 + half * 8 + lane / 4;
        if (h >= u.heads)
          continue;
        const float l = total[h], inverse = l == 0 ? 0 : 1 / l;
#pragma unroll
        for (int n = 0; n < 2 * kPairs; ++n) {
          const int col = warp_id() * kColumns + n * 8 + lane % 4 * 2;
          const float x = sums[m][n][2 * half], y = sums[m][n][2 * half + 1];
          if (u.part) {
            *(float2 *)(u.part + h * c.latent + col) = float2{x, y};
          } else {
            const int64_t at = u.row * c.ld_out + (int64_t)(u.head + h) * c.latent + col;
            store<c.out_type>(out_of<c>(args), at, x * inverse);
            store<c.out_type>(out_of<c>(args), at + 1, y * inverse);
          }
        }
      }
    for (int h = threadIdx.x; h < u.heads; h += t.threads()) {
      if (u.part) {
        u.part[kGroup * c.latent + h] = top[h], u.part[kGroup * (c.latent + 1) + h] = total[h];
      } else if constexpr (c.lse != 0) {
        lse_of<c>(args)[u.row * c.heads + u.head + h] = lse_value<c>(top[h], total[h]);
      }
    }
  }
  K31_DEVICE void run(const Unit &u) {
    const Keys keys = keys_of<c>(args, u.row);
    start_tile(keys, u.first, u.end, 0);
    load_query(u);
    int slot = 0;
    for (int64_t first = u.first; first < u.end; first += kKeys, slot ^= 1) {
      copy_wait<0>();
      __syncthreads(); // the tile has come, and the other one is no longer read
      if (first + kKeys < u.end)
        start_tile(keys, first + kKeys, u.end, slot ^ 1);
      score(slot);
      softmax(slot);
      accumulate(slot);
    }
    copy_wait<0>();
    __syncthreads();
    finish(u);
    __syncthreads();
  }
};

// ---- plain products
template <Config c, Tile t> struct Plain {
  static constexpr int kGroup = t.threads() / 32, kLatent = (c.latent + 31) / 32, kShared = (c.shared + 31) / 32;

  const Args &args;
  K31_DEVICE Plain(const Args &args) : args(args) {}

  K31_DEVICE void run(const Unit &u) {
    const int lane = lane_id(), h = warp_id();
    if (h >= u.heads)
      return;
    const int64_t head = u.head + h;
    const Keys keys = keys_of<c>(args, u.row);
    float q[kLatent], q_shared[kShared > 0 ? kShared : 1], sums[kLatent], top = minus_infinity(), total = 0;
#pragma unroll
    for (int i = 0; i < kLatent; ++i) {
      const int d = lane + 32 * i;
      q[i] = d < c.latent ? load<c.q_type>(args.q_latent, u.row * c.ld_q + head * c.latent + d) * (c.scale * kLog2e) : 0;
      sums[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < kShared; ++i) {
      const int d = lane + 32 * i;
      q_shared[i] = d < c.shared
                        ? load<c.shared_type>(args.q_shared, u.row * c.ld_shared + head * c.head_shared + c.shared_begin + d) *
                              (c.scale * kLog2e)
                        : 0;
    }
    for (int64_t entry = u.first; entry < u.end; ++entry) {
      const int64_t row = keys.row(entry);
      if (row < 0)
        continue;
      float key[kLatent], dot = 0;
#pragma unroll
      for (int i = 0; i < kLatent; ++i) {
        const int d = lane + 32 * i;
        key[i] = d < c.latent ? load<c.cache_type>(args.pages, row * (c.latent + c.shared) + d) : 0;
        dot += q[i] * key[i];
      }
#pragma unroll
      for (int i = 0; i < kShared; ++i) {
        const int d = lane + 32 * i;
        if (d < c.shared)
          dot += q_shared[i] * load<c.cache_type>(args.pages, row * (c.latent + c.shared) + c.latent + d);
      }
      dot = warp_sum(dot);
      const float now = fmaxf(top, dot), factor = exp2f(top - now), weight = exp2f(dot - now);
      top = now, total = total * factor + weight;
#pragma unroll
      for (int i = 0; i < kLatent; ++i)
        sums[i] = sums[i] * factor + weight * key[i];
    }
    const float inverse = total == 0 ? 0 : 1 / total;
#pragma unroll
    for (int i = 0; i < kLatent; ++i) {
      const int d = lane + 32 * i;
      if (d >= c.latent)
        continue;
      if (u.part)
        u.part[h * c.latent + d] = sums[i];
      else
        store<c.out_type>(out_of<c>(args), u.row * c.ld_out + head * c.latent + d, sums[i] * inverse);
    }
    if (lane == 0) {
      if (u.part)
        u.part[kGroup * c.latent + h] = top, u.part[kGroup * (c.latent + 1) + h] = total;
      else if constexpr (c.lse != 0)
        lse_of<c>(args)[u.row * c.heads + head] = lse_value<c>(top, total);
    }
  }
};

// Merges the parts of a unit; `part` is that of its first block. This block writes its share of the values.
template <Config c, Tile t, int group>
K31_DEVICE void merge(const Args &args, const Unit &u, const float *part, int member, int parts) {
  const int64_t stride = part_floats(c, t);
  for (int i = member * t.threads() + threadIdx.x; i < u.heads * c.latent; i += parts * t.threads()) {
    const int h = i / c.latent, d = i % c.latent;
    float top = minus_infinity(), total = 0, sum = 0;
    for (int p = 0; p < parts; ++p)
      top = fmaxf(top, __ldcg(part + p * stride + group * c.latent + h));
    const float base = top == minus_infinity() ? 0 : top;
    for (int p = 0; p < parts; ++p) {
      const float *from = part + p * stride;
      const float weight = exp2f(__ldcg(from + group * c.latent + h) - base);
      total += weight * __ldcg(from + group * (c.latent + 1) + h), sum += weight * __ldcg(from + i);
    }
    store<c.out_type>(out_of<c>(args), u.row * c.ld_out + (int64_t)(u.head + h) * c.latent + d, total == 0 ? 0 : sum / total);
    if (c.lse != 0 && d == 0)
      lse_of<c>(args)[u.row * c.heads + u.head + h] = lse_value<c>(top, total);
  }
}

template <Config c, Tile t, class Kernel> K31_DEVICE void share_rows(const Args &args) {
  constexpr int kGroups = (c.heads + Kernel::kGroup - 1) / Kernel::kGroup;
  Kernel kernel(args);
  const int64_t live = args.batch.counts[0], units = live * kGroups;
  const int blocks = (int)gridDim.x;
  auto unit_of = [&](int64_t i) {
    Unit u{i / kGroups, 0, 0, (int)(i % kGroups) * Kernel::kGroup, 0, nullptr};
    u.heads = least(Kernel::kGroup, c.heads - u.head);
    u.end = keys_of<c>(args, u.row).count;
    return u;
  };
  const int parts = units > 0 && units * 2 <= blocks ? (int)(blocks / units) : 1;
  if (parts == 1) {
    for (int64_t i = blockIdx.x; i < units; i += blocks)
      kernel.run(unit_of(i));
    return;
  }
  const int unit = (int)blockIdx.x / parts, member = (int)blockIdx.x % parts;
  if (unit >= units)
    return;
  Unit u = unit_of(unit);
  const Unit whole = u;
  float *all = workspace_of<c>(args);
  const int64_t size = ceil_div(ceil_div(u.end, t.keys), parts) * t.keys; // of a part: whole tiles
  u.first = member * size < whole.end ? member * size : whole.end;
  u.end = u.first + size < whole.end ? u.first + size : whole.end;
  u.part = all + blockIdx.x * part_floats(c, t);
  kernel.run(u);
  meet(meeting_of<c, t>(unit), parts);
  merge<c, t, Kernel::kGroup>(args, whole, all + (int64_t)unit * parts * part_floats(c, t), member, parts);
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (t.products(c))
    if (aligned16(args.pages))
      return share_rows<c, t, Products<c, t>>(args);
  share_rows<c, t, Plain<c, t>>(args);
}

} // namespace k31::kernels::attend
