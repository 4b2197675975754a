// Host kernel of attn.kda: tasks share the (head, segment) pairs; one task walks all tokens of a segment for a head.
//
// S [key, value] stays where it is stored (64 KB at 128 x 128, in the L2 cache after the first touch); vectors run over values,
// and blocks of values are independent of each other. With a = exp(g) <= 1, all decays are products of a's, never exponentials
// of sums: nothing can overflow, however strong the decay is.
//
// Token by token: one pass for u = (a k)^T S and for (a q)^T S, then delta = beta (v - u), o = (a q)^T S + (q.k) delta and
// S <- a S + k delta.
// Chunk of C tokens, P_i the product of a_0 .. a_i and E_ij that of a_{j+1} .. a_i:
//   delta_i = beta_i (v_i - (P_i k_i)^T S - sum_{j<i} (k_i . E_ij k_j) delta_j)    forward substitution
//   o_i     = (P_i q_i)^T S + sum_{j<=i} (q_i . E_ij k_j) delta_j
//   S      <- P_last S + sum_j (E_last,j k_j) delta_j^T
// which is the chunk form of the model's description, solved for delta instead of for (I + A)^-1.
#include "codegen/kernels/attn/kda_token.h"

namespace k31::kernels::kda {
extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

constexpr int kMaxChunk = 16; // a larger Config::chunk is cut down to it
constexpr int kTile = 4;      // tokens, or keys, of a register tile

namespace {
struct Kernel {
  K31_INLINE const Config &config() { return k31_config; }
};
} // namespace
using Token = Tokens<Kernel>;

// What the blocks of values of a chunk share; rows of head_dim values, one a token.
struct Chunk {
  alignas(64) float k[kMaxChunk * kMaxDim]; // k, later E_last,j k_j
  alignas(64) float q[kMaxChunk * kMaxDim];
  alignas(64) float a[kMaxChunk * kMaxDim];
  alignas(64) float pk[kMaxChunk * kMaxDim]; // P_i k_i
  alignas(64) float pq[kMaxChunk * kMaxDim]; // P_i q_i
  alignas(64) float last[kMaxDim];           // P_last
  float kk[kMaxChunk * kMaxChunk];           // k_i . E_ij k_j, j < i
  float qk[kMaxChunk * kMaxChunk];           // q_i . E_ij k_j, j <= i
  float beta[kMaxChunk];
};

// The products of all pairs of tokens: walking j down from i, one factor a_{j+1} joins E_ij a step.
K31_INLINE void pairs(Chunk &x, int n) {
  const int dim = k31_config.head_dim;
  for (int i = 1; i < n; ++i) {
    f32x16 k[kMaxDim / kLanes], q[kMaxDim / kLanes];
    for (int d = 0; d < dim; d += kLanes)
      k[d / kLanes] = load16(x.k, DType::f32, i * dim + d), q[d / kLanes] = load16(x.q, DType::f32, i * dim + d);
    for (int j = i - 1; j >= 0; --j) {
      f32x16 kk = splat(0), qk = splat(0);
      for (int d = 0; d < dim; d += kLanes) {
        f32x16 a = load16(x.a, DType::f32, (j + 1) * dim + d), other = load16(x.k, DType::f32, j * dim + d);
        k[d / kLanes] *= a, q[d / kLanes] *= a;
        kk += k[d / kLanes] * other, qk += q[d / kLanes] * other;
      }
      x.kk[i * kMaxChunk + j] = sum(kk);
      x.qk[i * kMaxChunk + j] = sum(qk);
    }
  }
}

K31_INLINE void prepare(const Work &w, int64_t row, int n, Chunk &x) {
  const int dim = k31_config.head_dim;
  for (int i = 0; i < n; ++i) {
    x.qk[i * kMaxChunk + i] = Token::load_token(w, row + i, x.q + i * dim, x.k + i * dim, x.a + i * dim);
    x.beta[i] = Token::load_beta(w, row + i);
  }
  pairs(x, n);
  const int padded = (n + kTile - 1) / kTile * kTile;
  for (int d = 0; d < dim; d += kLanes) {
    f32x16 p = splat(1);
    for (int i = 0; i < n; ++i) {
      p *= load16(x.a, DType::f32, i * dim + d);
      store16(x.pk, DType::f32, i * dim + d, p * load16(x.k, DType::f32, i * dim + d));
      store16(x.pq, DType::f32, i * dim + d, p * load16(x.q, DType::f32, i * dim + d));
    }
    store16(x.last, DType::f32, d, p);
    for (int i = n; i < padded; ++i) {
      store16(x.pk, DType::f32, i * dim + d, splat(0));
      store16(x.pq, DType::f32, i * dim + d, splat(0));
    }
    p = splat(1);
    for (int j = n - 1; j >= 0; --j) {
      store16(x.k, DType::f32, j * dim + d, p * load16(x.k, DType::f32, j * dim + d));
      p *= load16(x.a, DType::f32, j * dim + d);
    }
  }
}

// y [tokens, V vectors] = rows^T S for kTile tokens.
template <int V> K31_INLINE void read_state(const float *s, const float *rows, int dim, f32x16 *y) {
  f32x16 acc[kTile][V];
  for (int t = 0; t < kTile; ++t)
    for (int i = 0; i < V; ++i)
      acc[t][i] = splat(0);
  for (int d = 0; d < dim; ++d) {
    f32x16 line[V];
    for (int i = 0; i < V; ++i)
      line[i] = load16(s, DType::f32, d * dim + i * kLanes);
    for (int t = 0; t < kTile; ++t)
      for (int i = 0; i < V; ++i)
        acc[t][i] += line[i] * rows[t * dim + d];
  }
  for (int t = 0; t < kTile; ++t)
    for (int i = 0; i < V; ++i)
      y[t * V + i] = acc[t][i];
}

// V vectors of values from `value` on, for n tokens.
template <int V> K31_INLINE void chunk_block(const Work &w, int64_t row, int value, int n, const Chunk &x) {
  const int dim = k31_config.head_dim;
  f32x16 delta[kMaxChunk * V], o[kMaxChunk * V];
  for (int t = 0; t < n; t += kTile) {
    read_state<V>(w.from + value, x.pk + t * dim, dim, delta + t * V);
    read_state<V>(w.from + value, x.pq + t * dim, dim, o + t * V);
  }
  for (int t = 0; t < n; ++t) {
    f32x16 seen[V], out[V];
    for (int i = 0; i < V; ++i)
      seen[i] = delta[t * V + i], out[i] = o[t * V + i];
    for (int j = 0; j < t; ++j)
      for (int i = 0; i < V; ++i) {
        seen[i] += delta[j * V + i] * x.kk[t * kMaxChunk + j];
        out[i] += delta[j * V + i] * x.qk[t * kMaxChunk + j];
      }
    for (int i = 0; i < V; ++i) {
      f32x16 change = (Token::load_v(w, row + t, value + i * kLanes) - seen[i]) * x.beta[t];
      delta[t * V + i] = change;
      Token::store_o(w, row + t, value + i * kLanes, out[i] + change * x.qk[t * kMaxChunk + t]);
    }
  }
  for (int d = 0; d < dim; d += kTile) {
    f32x16 s[kTile][V];
    for (int r = 0; r < kTile; ++r)
      for (int i = 0; i < V; ++i)
        s[r][i] = load16(w.from, DType::f32, (d + r) * dim + value + i * kLanes) * x.last[d + r];
    for (int j = 0; j < n; ++j)
      for (int r = 0; r < kTile; ++r)
        for (int i = 0; i < V; ++i)
          s[r][i] += delta[j * V + i] * x.k[j * dim + d + r];
    for (int r = 0; r < kTile; ++r)
      for (int i = 0; i < V; ++i)
        store16(w.to, DType::f32, (d + r) * dim + value + i * kLanes, s[r][i]);
  }
}

K31_INLINE void chunk(const Work &w, int64_t row, int n, Chunk &x) {
  prepare(w, row, n, x);
  int value = 0;
  for (; value + 2 * kLanes <= k31_config.head_dim; value += 2 * kLanes)
    chunk_block<2>(w, row, value, n, x);
  for (; value < k31_config.head_dim; value += kLanes)
    chunk_block<1>(w, row, value, n, x);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const int64_t segments = args->batch.counts[1];
  const int most = c.chunk < kMaxChunk ? c.chunk : kMaxChunk;
  Chunk x;
  // Heads are the outer index: a long segment's heads then spread over all tasks.
  Range units = share(c.heads * segments, task, tasks);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const Segment &segment = args->batch.segments[unit % segments];
    Work w = Token::begin(args, segment, unit / segments);
    int64_t row = segment.row_begin, end = row + segment.length;
    bool chunks = most > 1 && segment.length >= most;
    for (int n; row < end; row += n, w.from = w.to) {
      n = !chunks ? 1 : end - row < most ? (int)(end - row) : most;
      if (n == 1)
        Token::token(w, row);
      else
        chunk(w, row, n, x);
    }
  }
}

} // namespace k31::kernels::kda
