// What the chunk form of attn.kda needs of 16 tokens beside the state, made by warps of its own ahead of those that hold the
// state (kda_chunk.cuh): two groups of them take turns, since a chunk is a chain of small steps.
//
// Pairs of tokens (the A of kda_chunk.cuh, and Q . E K) are products too: E_ij = exp(G_i) exp(-G_j), one factor a side. Both
// sides are two values of bf16 each, hi + lo, and three products keep some 16 bits. exp(-G) must be a number: where a channel's G
// passes 2^-kFar in a chunk, the pairs go by loops with exp(G_i - G_j), which is never above 1. Differences of large sums lose
// bits, so a decay below 2^-kGone, which leaves nothing, counts as 2^-kGone there.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/kda.tile.h"
#include "codegen/kernels/common/math.cuh"
#include "codegen/kernels/common/mbarrier.cuh"
#include "codegen/kernels/common/mma.cuh"

namespace k31::kernels::kda {

constexpr int kChunk = kChunkTokens;
constexpr float kFar = 120;  // of the 127 binary orders that fp32 and bf16 have above 1
constexpr float kGone = 150; // below all that fp32 has

template <int D> using HalfRows = uint16_t[kChunk][D + 8]; // padded rows: no bank conflicts
template <int D> using FloatRows = float[kChunk][D + 4];

// A prepared chunk.
template <int D> struct ChunkStage {
  alignas(16) HalfRows<D> pk, pq;                         // exp(G_i) k_i, exp(G_i) q_i
  alignas(16) HalfRows<D> kd, v;                          // E_last,j k_j
  alignas(16) uint16_t solve[kChunk][24], qk[kChunk][24]; // (I + A)^-1 diag(beta); q_i . E_ij k_j
  alignas(16) float last[D];                              // exp(G_last)
  float beta[kChunk];
};

template <int D> struct ChunkScratch {
  static constexpr int kParts = D / 64; // of the sums over the keys
  alignas(16) FloatRows<D> g, sum;      // g and G, in base 2
  union {
    struct {
      alignas(16) HalfRows<D> pk_low, pq_low, up, up_low; // what rounding left of pk and pq; exp(-G_j) k_j
    };
    struct {
      alignas(16) FloatRows<D> q, k; // where G is far
    };
  };
  float pair[2][kParts][kChunk][kChunk + 1], a[kChunk][kChunk + 1];
  int far;
};

// D threads, all of which call everything. A thread has 16 values of a token.
template <Config c, Tile t> struct Preparation {
  static constexpr int D = c.head_dim, kThreads = D, kValues = 16, kParts = D / kValues;

  const Args &args;
  ChunkScratch<D> &x;
  const int thread, barrier, token = thread / kParts, first = thread % kParts * kValues;
  // Raw values of the next chunk; q and k of this.
  uint4 raw_q[2], raw_k[2], raw_v[2];
  float g[kValues], beta, q[kValues], k[kValues];

  K31_DEVICE Preparation(const Args &args, ChunkScratch<D> &x, int thread, int barrier)
      : args(args), x(x), thread(thread), barrier(barrier) {}
  K31_DEVICE void meet() const { warps_meet(barrier, kThreads); }

  K31_DEVICE void fetch(int head, int64_t row, int64_t end) {
    beta = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      raw_q[i] = raw_k[i] = raw_v[i] = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      g[i] = 0;
    if (row + token >= end)
      return;
    const int64_t at = (row + token) * c.ld_qkv + (int64_t)head * D + first;
    load_words(args.q, at, raw_q), load_words(args.k, at, raw_k), load_words(args.v, at, raw_v);
    load_values<DType::f32>(args.g, (row + token) * c.ld_g + (int64_t)head * D + first, g);
    beta = args.beta[(row + token) * c.ld_beta + head];
  }

  // What was fetched: q and k normalised, q scaled, g in base 2.
  K31_DEVICE void place(ChunkStage<D> &to) {
    float qq = 0, kk = 0;
    widen(raw_q, q), widen(raw_k, k);
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      qq += q[i] * q[i], kk += k[i] * k[i];
    qq = warp_sum<kParts>(qq), kk = warp_sum<kParts>(kk);
    const float q_scale = 1 / (sqrtf(qq + 1e-6f) * sqrtf((float)D)), k_scale = 1 / sqrtf(kk + 1e-6f);
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      q[i] *= q_scale, k[i] *= k_scale, g[i] *= 1.44269504088896341f;
    store_values<DType::f32>(&x.g[token][first], 0, g);
    put(to.v, raw_v);
    if (first == 0)
      to.beta[token] = beta;
    if (thread == 0)
      x.far = 0;
  }
  K31_DEVICE void sum_decays(ChunkStage<D> &to) { // a thread a key channel
    float v[kChunk];
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      v[i] = x.g[i][thread];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      x.sum[i][thread] = sum += v[i];
    to.last[thread] = exp2_flushed(sum);
    if (sum < -kFar) {
      x.far = 1;
      sum = 0;
#pragma unroll
      for (int i = 0; i < kChunk; ++i)
        x.sum[i][thread] = sum += v[i] < -kGone ? -kGone : v[i];
    }
  }
  // Operands that decay from the chunk's start or to its end, and those of pairs.
  K31_DEVICE void decay_operands(ChunkStage<D> &to) {
    float sum[kValues], last[kValues], v[kValues];
    uint4 high[2], low[2];
    const bool far = x.far;
    load_values<DType::f32>(&x.sum[token][first], 0, sum);
    float p[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      p[i] = exp2_flushed(sum[i]), v[i] = p[i] * k[i];
    narrow(v, high, low), put(to.pk, high);
    if (!far)
      put(x.pk_low, low);
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      v[i] = p[i] * q[i];
    narrow(v, high, low), put(to.pq, high);
    if (far) {
      store_values<DType::f32>(&x.q[token][first], 0, q), store_values<DType::f32>(&x.k[token][first], 0, k);
      load_values<DType::f32>(&x.sum[kChunk - 1][first], 0, last);
#pragma unroll
      for (int i = 0; i < kValues; ++i)
        v[i] = exp2_flushed(last[i] - sum[i]) * k[i];
      narrow(v, high, low), put(to.kd, high);
      return;
    }
    put(x.pq_low, low);
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      v[i] = exp2_flushed(-sum[i]) * k[i];
    narrow(v, high, low), put(x.up, high), put(x.up_low, low);
    load_values<DType::f32>(&to.last[first], 0, last);
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      v[i] *= last[i];
    narrow(v, high, low), put(to.kd, high);
  }
  // Products of pairs of tokens: a warp takes 64 keys, for k or for q.
  K31_DEVICE void multiply_pairs(const ChunkStage<D> &of) {
    const int lane = lane_id(), warp = thread / 32, of_q = warp % 2, keys = warp / 2 * 64;
    const HalfRows<D> &high = of_q ? of.pq : of.pk, &low = of_q ? x.pq_low : x.pk_low;
    float s[3][2][4] = {};
#pragma unroll
    for (int d = keys; d < keys + 64; d += 16) {
      uint32_t a[4], a_low[4], b[4], b_low[4];
      load_matrices(a, &high[lane % 16][d + lane / 16 * 8]), load_matrices(a_low, &low[lane % 16][d + lane / 16 * 8]);
      load_rows(b, &x.up[0][0], D + 8, d), load_rows(b_low, &x.up_low[0][0], D + 8, d);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        mma_bf16(s[0][n], a[0], a[1], a[2], a[3], b[2 * n], b[2 * n + 1]);
        mma_bf16(s[1][n], a_low[0], a_low[1], a_low[2], a_low[3], b[2 * n], b[2 * n + 1]);
        mma_bf16(s[2][n], a[0], a[1], a[2], a[3], b_low[2 * n], b_low[2 * n + 1]);
      }
    }
    float (&to)[kChunk][kChunk + 1] = x.pair[of_q][warp / 2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        to[lane / 4 + i / 2 * 8][n * 8 + lane % 4 * 2 + i % 2] = s[0][n][i] + (s[1][n][i] + s[2][n][i]);
  }
  K31_DEVICE void pair_by_loops(int i, int j, float &kk, float &qk) const {
#pragma unroll 4
    for (int d = 0; d < D; ++d) {
      const float e = exp2_flushed(x.sum[i][d] - x.sum[j][d]) * x.k[j][d];
      kk += x.k[i][d] * e, qk += x.q[i][d] * e;
    }
  }
  K31_DEVICE void finish_pairs(ChunkStage<D> &to) {
    for (int pair = thread; pair < kChunk * kChunk; pair += kThreads) {
      const int i = pair / kChunk, j = pair % kChunk;
      float kk = 0, qk = 0;
      if (j <= i && x.far)
        pair_by_loops(i, j, kk, qk);
      else if (j <= i)
#pragma unroll
        for (int p = 0; p < ChunkScratch<D>::kParts; ++p)
          kk += x.pair[0][p][i][j], qk += x.pair[1][p][i][j];
      x.a[i][j] = j < i ? to.beta[i] * kk : 0;
      to.qk[i][j] = to_bf16(qk); // zero above the diagonal
    }
  }
  // (I + A)^-1 diag(beta), a thread a column of the inverse.
  K31_DEVICE void solve(ChunkStage<D> &to) const {
    if (thread >= kChunk)
      return;
    float y[kChunk];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      float sum = i == thread ? 1 : 0;
#pragma unroll
      for (int j = 0; j < i; ++j)
        sum -= x.a[i][j] * y[j];
      y[i] = sum;
    }
    const float b = to.beta[thread];
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      to.solve[i][thread] = to_bf16(y[i] * b);
  }

  // What was fetched becomes a stage. The threads of the last step may still be at it when the others are back.
  template <class Next> K31_DEVICE void prepare(ChunkStage<D> &to, const Next &next) {
    place(to);
    meet();
    sum_decays(to);
    meet();
    decay_operands(to);
    next(); // when few registers are needed
    meet();
    if (!x.far)
      multiply_pairs(to);
    meet();
    finish_pairs(to);
    meet();
    solve(to);
  }

  // B^T rows [16 tokens, 16 of k] at `rows` as the fragments of tokens 0..7 and 8..15.
  static K31_DEVICE void load_rows(uint32_t (&b)[4], const uint16_t *rows, int ld, int k) {
    const int lane = lane_id();
    load_matrices(b, rows + (lane / 16 * 8 + lane % 8) * ld + k + lane / 8 % 2 * 8);
  }

private:
  static K31_DEVICE void load_words(const void *from, int64_t at, uint4 (&to)[2]) {
    to[0] = *(const uint4 *)((const uint16_t *)from + at), to[1] = *(const uint4 *)((const uint16_t *)from + at + 8);
  }
  K31_DEVICE void put(HalfRows<D> &to, const uint4 (&v)[2]) const {
    *(uint4 *)&to[token][first] = v[0], *(uint4 *)&to[token][first + 8] = v[1];
  }
  static K31_DEVICE void widen(const uint4 (&v)[2], float (&to)[kValues]) {
    const uint32_t w[8] = {v[0].x, v[0].y, v[0].z, v[0].w, v[1].x, v[1].y, v[1].z, v[1].w};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      to[2 * i] = bf16_low(w[i]), to[2 * i + 1] = bf16_high(w[i]);
  }
  // v as high + low.
  static K31_DEVICE void narrow(const float (&v)[kValues], uint4 (&high)[2], uint4 (&low)[2]) {
    uint32_t h[8], l[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      h[i] = pack_bf16(v[2 * i], v[2 * i + 1]);
      l[i] = pack_bf16(v[2 * i] - bf16_low(h[i]), v[2 * i + 1] - bf16_high(h[i]));
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      high[i] = make_uint4(h[4 * i], h[4 * i + 1], h[4 * i + 2], h[4 * i + 3]),
      low[i] = make_uint4(l[4 * i], l[4 * i + 1], l[4 * i + 2], l[4 * i + 3]);
  }
};

} // namespace k31::kernels::kda
