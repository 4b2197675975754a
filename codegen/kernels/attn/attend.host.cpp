// Host kernel of attn.attend: tasks share the (row, group of heads) pairs; a head's sums do not depend on its group.
//
// Keys come in tiles of 16. A tile's cache rows are widened to fp32 once for all heads of the group; scores are register tiles of
// 4 heads x 4 keys, and the weighted sum of latents runs in tiles of 4 heads x 64 columns. One pass, with a running
// maximum m and sum l: a tile that raises m scales what was summed before by exp(m_old - m_new).
#include "codegen/kernels/attn/attend.h"
#include "codegen/kernels/common/fp8_lanes.h"

namespace k31::kernels::attend {
extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

constexpr int kKeys = kLanes; // keys of a tile: the scores of a head are one vector
constexpr int kTile = 4;      // heads, or keys, of a register tile
constexpr int kMaxGroup = 32; // heads of a group
constexpr int kMaxWidth = kMaxLatent + kMaxShared;

K31_INLINE int up(int n, int to) { return (n + to - 1) / to * to; }

// fp32 rows: the latent part, zeros up to a multiple of 16, the shared part, zeros up to a multiple of 16.
K31_INLINE int latent_width() { return up(k31_config.latent, kLanes); }
K31_INLINE int row_width() { return latent_width() + up(k31_config.shared, kLanes); }

K31_INLINE void widen(const void *from, DType type, int64_t at, int n, float scale, float *to) {
  for (int i = 0; i < n; i += kLanes)
    store16(to, DType::f32, i, load_part(from, type, at + i, n - i < kLanes ? n - i : kLanes) * scale);
}

// A cache row as fp32.
K31_INLINE void widen_row(const void *pages, int64_t row, float *to) {
  const Config &c = k31_config;
  const char *from = (const char *)pages + row * c.row_bytes();
  if (c.cache_type != DType::f8) {
    widen(from, c.cache_type, 0, c.latent, 1, to);
    widen(from, c.cache_type, c.latent, c.shared, 1, to + latent_width());
    return;
  }
  for (int i = 0; i < c.latent; i += kLanes) {
    float scale;
    memcpy(&scale, from + row_scales_at(c.latent) + i / kRowScaleCodes * 4, 4);
    store16(to, DType::f32, i,
            load_codes((const uint8_t *)from + i, DType::f8, c.latent - i < kLanes ? c.latent - i : kLanes, scale));
  }
  widen(from + row_rest_at(c.latent), DType::bf16, 0, c.shared, 1, to + latent_width());
}

struct Group {
  alignas(64) float q[kMaxGroup * kMaxWidth];     // queries, scaled
  alignas(64) float sums[kMaxGroup * kMaxLatent]; // weighted latents, not yet divided by l
  alignas(64) float keys[kKeys * kMaxWidth];      // the tile of cache rows
  float m[kMaxGroup], l[kMaxGroup];
};

K31_INLINE void load_queries(const Args *args, int64_t row, int head, int heads, int padded, Group &x) {
  const Config &c = k31_config;
  const int width = row_width(), latent = latent_width();
  for (int h = 0; h < padded; ++h) {
    float *q = x.q + h * width;
    if (h < heads) {
      widen(args->q_latent, c.q_type, row * c.ld_q + (int64_t)(head + h) * c.latent, c.latent, c.scale, q);
      int64_t shared = row * c.ld_shared + (int64_t)(head + h) * c.head_shared + c.shared_begin;
      widen(args->q_shared, c.shared_type, shared, c.shared, c.scale, q + latent);
    } else {
      memset(q, 0, width * sizeof(float)); // a head that only fills the register tile
    }
    memset(x.sums + h * latent, 0, latent * sizeof(float));
    x.m[h] = -__builtin_inff(), x.l[h] = 0;
  }
}

// scores[h, 16]: kTile heads against kTile keys.
K31_INLINE void score(const float *q, const float *keys, float *scores) {
  const int width = row_width();
  f32x16 acc[kTile * kTile];
  for (int i = 0; i < kTile * kTile; ++i)
    acc[i] = splat(0);
  for (int d = 0; d < width; d += kLanes) {
    f32x16 k[kTile];
    for (int j = 0; j < kTile; ++j)
      k[j] = load16(keys, DType::f32, j * width + d);
    for (int h = 0; h < kTile; ++h) {
      f32x16 v = load16(q, DType::f32, h * width + d);
      for (int j = 0; j < kTile; ++j)
        acc[h * kTile + j] += v * k[j];
    }
  }
  f32x16 s = sums16(acc);
  for (int h = 0; h < kTile; ++h)
    memcpy(scores + h * kKeys, (const float *)&s + h * kTile, kTile * sizeof(float));
}

// sums[h] = sums[h] scale[h] + sum_k p[h, k] latent[k], V vectors of columns of kTile heads.
template <int V> K31_INLINE void accumulate(const float *p, const float *scale, const float *keys, int n, float *sums) {
  const int width = row_width(), latent = latent_width();
  f32x16 acc[kTile][V];
  for (int h = 0; h < kTile; ++h)
    for (int i = 0; i < V; ++i)
      acc[h][i] = load16(sums, DType::f32, h * latent + i * kLanes) * scale[h];
  for (int k = 0; k < n; ++k) {
    f32x16 c[V];
    for (int i = 0; i < V; ++i)
      c[i] = load16(keys, DType::f32, k * width + i * kLanes);
    for (int h = 0; h < kTile; ++h)
      for (int i = 0; i < V; ++i)
        acc[h][i] += c[i] * p[h * kKeys + k];
  }
  for (int h = 0; h < kTile; ++h)
    for (int i = 0; i < V; ++i)
      store16(sums, DType::f32, h * latent + i * kLanes, acc[h][i]);
}

// The highest lane. A NaN may be passed over: its exponential still makes the sum NaN.
K31_INLINE float highest(f32x16 v) {
  f32x16 w = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v = v > w ? v : w;
  w = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  v = v > w ? v : w;
  w = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  v = v > w ? v : w;
  w = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  v = v > w ? v : w;
  return v[0];
}

// The n keys of the tile join the sums of kTile heads from h on.
K31_INLINE void join(Group &x, int h, int n) {
  const int width = row_width(), latent = latent_width();
  alignas(64) float p[kTile * kKeys];
  float scale[kTile];
  for (int k = 0; k < n; k += kTile)
    score(x.q + h * width, x.keys + k * width, p + k);
  const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  f32x16 change = splat(0);
  for (int i = 0; i < kTile; ++i) {
    f32x16 s = lane < (i32x16)n ? load16(p, DType::f32, i * kKeys) : splat(-__builtin_inff());
    float top = highest(s);
    top = top > x.m[h + i] ? top : x.m[h + i];
    change[i] = x.m[h + i] - top;
    x.m[h + i] = top;
    store16(p, DType::f32, i * kKeys, exp16(s - top));
  }
  change = exp16(change); // one exponential for all heads of the tile
  for (int i = 0; i < kTile; ++i) {
    scale[i] = change[i];
    x.l[h + i] = x.l[h + i] * scale[i] + sum(load16(p, DType::f32, i * kKeys));
  }
  int d = 0;
  for (; d + 4 * kLanes <= latent; d += 4 * kLanes)
    accumulate<4>(p, scale, x.keys + d, n, x.sums + h * latent + d);
  for (; d < latent; d += kLanes)
    accumulate<1>(p, scale, x.keys + d, n, x.sums + h * latent + d);
}

// Fills the tile from the cache: positions next .. count - 1, or those named by `indices`. Returns the number of keys.
K31_INLINE int load_keys(const Args *args, const int32_t *table, const int32_t *indices, int64_t count, int64_t &next,
                         float *keys) {
  const Config &c = k31_config;
  const int width = row_width();
  int n = 0;
  for (; n < kKeys && next < count; ++next) {
    int64_t position = indices ? indices[next] : next;
    if (position < 0)
      continue;
    if (indices && next + kKeys < count &&
        indices[next + kKeys] >= 0) { // a scattered row of the next tile starts its way from memory
      const int64_t size = c.row_bytes();
      const char *row = (const char *)args->pages + cache_row(table, indices[next + kKeys]) * size;
      for (int64_t byte = 0; byte < size; byte += 64)
        __builtin_prefetch(row + byte, 0, 2);
    }
    widen_row(args->pages, cache_row(table, position), keys + n * width);
    ++n;
  }
  if (n % kTile)
    memset(keys + n * width, 0, (kTile - n % kTile) * width * sizeof(float));
  return n;
}

K31_INLINE void attend(const Args *args, int64_t row, int head, int heads, Group &x) {
  const Config &c = k31_config;
  const int64_t s = args->batch.row_segment[row];
  const int32_t *table = args->batch.block_table + s * c.blocks;
  const int32_t *indices = c.top_k ? (const int32_t *)args->tail[0] + row * c.top_k : nullptr;
  const int64_t count = c.top_k ? c.top_k : position_of(args->batch.segments[s], row) + 1;
  const int padded = up(heads, kTile), latent = latent_width();
  load_queries(args, row, head, heads, padded, x);
  int64_t next = 0;
  while (int n = load_keys(args, table, indices, count, next, x.keys))
    for (int h = 0; h < padded; h += kTile)
      join(x, h, n);

  void *const *tail = args->tail + (c.top_k ? 1 : 0);
  for (int h = 0; h < heads; ++h) {
    // No key at all: the result is zero and its log-sum-exp is -inf, which merges with other parts as nothing.
    bool empty = x.l[h] == 0;
    float inverse = empty ? 0 : 1 / x.l[h];
    for (int d = 0; d < c.latent; d += kLanes)
      store_part(tail[0], c.out_type, row * c.ld_out + (int64_t)(head + h) * c.latent + d,
                 load16(x.sums, DType::f32, h * latent + d) * inverse, c.latent - d < kLanes ? c.latent - d : kLanes);
    if (c.lse)
      ((float *)tail[1])[row * c.heads + head + h] = empty ? -__builtin_inff() : x.m[h] + log1(x.l[h]);
  }
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const int64_t rows = args->batch.counts[0], heads = k31_config.heads;
  if (rows == 0)
    return;
  // Groups as large as possible, unless tasks would stay without work.
  int64_t groups = (heads + kMaxGroup - 1) / kMaxGroup;
  if (rows * groups < tasks)
    groups = (tasks + rows - 1) / rows;
  int64_t size = (heads + groups - 1) / groups;
  size = (size + kTile - 1) / kTile * kTile;
  groups = (heads + size - 1) / size;
  Group x;
  // In turns, not in runs: later rows of a segment see more keys.
  for (int64_t unit = task; unit < rows * groups; unit += tasks) {
    int64_t head = unit % groups * size;
    attend(args, unit / groups, (int)head, (int)(heads - head < size ? heads - head : size), x);
  }
}

} // namespace k31::kernels::attend
