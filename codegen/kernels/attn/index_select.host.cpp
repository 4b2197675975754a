// Host kernel of attn.index_select: tasks take the rows in turns; a row with no more than top_k keys is not scored.
//
// Scores: 32 keys at a time are transposed to [dim, key], so that lanes are keys, the query's values are broadcast, and neither a
// dot product nor the sum over heads needs a horizontal sum. Selection: scores become unsigned keys of the same order, a radix
// selection (digits of 11, 11 and 10 bits, or four of 8 for a short context) finds the smallest selected key and how many of its
// equals are taken, and one walk in ascending position writes the indices. All of it is linear in the context; the workspace row
// holds the keys and, behind them, the candidates of the next digit.
#include "codegen/kernels/attn/index_select.h"
#include "codegen/kernels/common/fp8_lanes.h"

namespace k31::kernels::index_select {
extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

constexpr int kKeys = 2 * kLanes; // divides a cache block
constexpr int kTile = 4;          // heads of a register tile; Config::host_limits knows it

K31_INLINE int up(int n, int to) { return (n + to - 1) / to * to; }

struct Query {
  alignas(64) float q[kMaxQuery]; // [heads / 4, dim, 4]
  float w[kMaxHeads];
};

K31_INLINE void load_query(const Args *args, int64_t row, Query &x) {
  const Config &c = k31_config;
  const int dim = up(c.head_dim, kLanes), heads = up(c.heads, kTile);
  for (int h = 0; h < heads; ++h) {
    bool real = h < c.heads; // the others only fill the register tile
    if (real)
      x.w[h] = load(args->w, c.w_type, row * c.ld_w + h) * c.head_scale;
    for (int d = 0; d < dim; ++d)
      x.q[(h / kTile * dim + d) * kTile + h % kTile] =
          real && d < c.head_dim ? load(args->q, c.q_type, row * c.ld_q + h * c.head_dim + d) : 0;
  }
}

// keys [dim, 32] of the positions from s on; a position past `last` repeats it.
K31_INLINE void load_keys(const Args *args, const int32_t *table, int64_t s, int64_t last, float *keys) {
  const Config &c = k31_config;
  if (s + kKeys <= last) { // the next tile, contiguous since a block holds whole tiles, starts its way from memory
    const int64_t row = cache_row(table, s + kKeys);
    const char *ahead = (const char *)args->pages +
                        (c.cache_type == DType::i8 ? key_at(row, c.head_dim) : row * c.head_dim * bytes_of(c.cache_type));
    for (int64_t byte = 0; byte < kKeys * c.head_dim * bytes_of(c.cache_type); byte += 64)
      __builtin_prefetch(ahead + byte, 0, 3);
  }
  for (int half = 0; half < kKeys; half += kLanes) {
    int64_t at[kLanes]; // of the first value of a key
    float scale[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int64_t row = cache_row(table, s + half + i < last ? s + half + i : last);
      at[i] = c.cache_type == DType::i8 ? key_at(row, c.head_dim) : row * c.head_dim;
      if (c.cache_type == DType::i8)
        memcpy(&scale[i], (const char *)args->pages + key_scale_at(row, c.head_dim), 4);
    }
    if (c.cache_type == DType::bf16 && c.head_dim % (2 * kLanes) == 0) {
      // Pairs of values travel as one lane: half the shuffles.
      for (int d = 0; d < c.head_dim; d += 2 * kLanes) {
        f32x16 v[kLanes];
        for (int i = 0; i < kLanes; ++i)
          v[i] = load_vector<f32x16>((const uint16_t *)args->pages + at[i] + d);
        transpose16(v);
        for (int i = 0; i < kLanes; ++i) {
          store16(keys, DType::f32, (d + 2 * i) * kKeys + half, (f32x16)((u32x16)v[i] << 16));
          store16(keys, DType::f32, (d + 2 * i + 1) * kKeys + half, (f32x16)((u32x16)v[i] & 0xffff0000u));
        }
      }
      continue;
    }
    for (int d = 0; d < c.head_dim; d += kLanes) {
      int n = c.head_dim - d < kLanes ? c.head_dim - d : kLanes;
      f32x16 v[kLanes];
      for (int i = 0; i < kLanes; ++i)
        v[i] = c.cache_type == DType::i8 ? load_codes((const uint8_t *)args->pages + at[i] + d, DType::i8, n, scale[i])
                                         : load_part(args->pages, c.cache_type, at[i] + d, n);
      transpose16(v);
      for (int i = 0; i < kLanes; ++i)
        store16(keys, DType::f32, (d + i) * kKeys + half, v[i]);
    }
  }
}

// The scores of 32 keys, as unsigned integers of the same order; NaN is the lowest.
K31_INLINE void score(const Query &x, const float *keys, uint32_t *out) {
  const Config &c = k31_config;
  const int dim = up(c.head_dim, kLanes), heads = up(c.heads, kTile);
  f32x16 total[2] = {splat(0), splat(0)};
  for (int h = 0; h < heads; h += kTile) {
    f32x16 acc[kTile][2];
    for (int i = 0; i < kTile; ++i)
      acc[i][0] = acc[i][1] = splat(0);
    const float *q = x.q + h * dim;
    for (int d = 0; d < dim; ++d) {
      f32x16 k0 = load16(keys, DType::f32, d * kKeys), k1 = load16(keys, DType::f32, d * kKeys + kLanes);
      for (int i = 0; i < kTile; ++i) {
        acc[i][0] += k0 * q[d * kTile + i];
        acc[i][1] += k1 * q[d * kTile + i];
      }
    }
    for (int i = 0; i < kTile && h + i < c.heads; ++i)
      for (int j = 0; j < 2; ++j) {
        f32x16 dot = acc[i][j] * c.scale;
        f32x16 relu = dot < splat(0) ? splat(0) : dot; // NaN stays
        total[j] += relu * x.w[h + i];
      }
  }
  for (int j = 0; j < 2; ++j) {
    f32x16 t = total[j] + splat(0); // -0.0, the rest of an underflow, becomes +0.0
    u32x16 bits = (u32x16)t, negative = (u32x16)((i32x16)bits >> 31);
    u32x16 ordered = bits ^ (negative | 0x80000000u);
    ordered &= (u32x16)(t == t);
    memcpy(out + j * kLanes, &ordered, sizeof ordered);
  }
}

// The k-th largest of n keys, by digits of Bits bits; `ties` becomes how many keys equal to it belong to the k largest.
// 1 <= k <= n.
template <int Bits>
K31_INLINE uint32_t kth_largest(const uint32_t *keys, uint32_t *scratch, int64_t n, int64_t k, int64_t &ties) {
  constexpr int kBins = 1 << Bits;
  uint32_t found = 0;
  const uint32_t *from = keys;
  for (int shift = 32; shift > 0;) {
    const int bits = shift < Bits ? shift : Bits;
    const uint32_t mask = (1u << bits) - 1;
    shift -= bits;
    uint32_t count[kBins];
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; ++i)
      ++count[from[i] >> shift & mask];
    uint32_t bin = mask;
    for (; count[bin] < k; --bin) // the counts add up to n >= k: ends before bin 0 is passed
      k -= count[bin];
    found |= bin << shift;
    if (shift == 0)
      break;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) { // in place from the second digit on: writes never pass reads
      uint32_t key = from[i];
      scratch[kept] = key;
      kept += (key >> shift & mask) == bin;
    }
    from = scratch, n = kept;
  }
  ties = k;
  return found;
}

K31_INLINE void select(const Args *args, int64_t row, uint32_t *workspace, Query &x) {
  const Config &c = k31_config;
  const int64_t segment = args->batch.row_segment[row];
  const int64_t last = position_of(args->batch.segments[segment], row), n = last + 1;
  int32_t *out = args->out + row * c.top_k;
  if (n <= c.top_k) {
    for (int64_t i = 0; i < c.top_k; ++i)
      out[i] = i < n ? (int32_t)i : -1;
    return;
  }
  load_query(args, row, x);
  alignas(64) float keys[kMaxDim * kKeys];
  for (int64_t s = 0; s < n; s += kKeys) {
    load_keys(args, args->batch.block_table + segment * c.blocks, s, last, keys);
    alignas(64) uint32_t scores[kKeys];
    score(x, keys, scores);
    memcpy(workspace + s, scores, (n - s < kKeys ? n - s : kKeys) * sizeof(uint32_t));
  }
  int64_t ties = 0;
  // Few keys: bins cost more than passes.
  const uint32_t lowest = n < 4096 ? kth_largest<8>(workspace, workspace + c.max_context, n, c.top_k, ties)
                                   : kth_largest<11>(workspace, workspace + c.max_context, n, c.top_k, ties);
  for (int64_t s = 0, taken = 0; taken < c.top_k; ++s) {
    bool equal = workspace[s] == lowest;
    out[taken] = (int32_t)s;
    taken += workspace[s] > lowest || (equal && ties > 0);
    ties -= equal;
  }
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  uint32_t *workspace = (uint32_t *)args->workspace + (int64_t)task * k31_config.max_context * 2;
  Query x;
  for (int64_t row = task; row < args->batch.counts[0]; row += tasks)
    select(args, row, workspace, x);
}

} // namespace k31::kernels::index_select
