// The chunk form of attn.kda by tensor cores: 16 tokens a step, one block a (segment, head).
//
// With G_i the sum of g up to token i, E_ij = exp(G_i - G_j) (j <= i, so never above 1), A_ij = beta_i k_i . E_ij k_j (j < i):
//   delta = (I + A)^-1 diag(beta) (V - exp(G) K S),   o = exp(G) Q S + (Q . E K) delta,   S <- exp(G_last) S + (E_last K)^T delta
// which is section 3.1 of the model's description. All threads prepare the chunk in shared memory: factors in fp32, operands
// rounded to bf16. Then each warp takes 16 values alone: S^T [16, keys] stays in its registers as fp32 accumulators, whose layout
// is also that of the A operand, so that state, V - U and delta never leave them. Tokens past the end are zero.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/kda.tile.h"
#include "codegen/kernels/common/mma.cuh"

namespace k31::kernels::kda {

constexpr int kChunk = kChunkTokens;

template <int D> struct ChunkShared {
  static constexpr int kRow = D + 4, kHalfRow = D + 8;                 // padded rows: no bank conflicts
  alignas(16) float q[kChunk][kRow], k[kChunk][kRow], g[kChunk][kRow]; // g becomes G, in base 2
  alignas(16) uint16_t pk[kChunk][kHalfRow], pq[kChunk][kHalfRow];     // exp(G_i) k_i, exp(G_i) q_i
  alignas(16) uint16_t kd[kChunk][kHalfRow], v[kChunk][kHalfRow];      // E_last,j k_j
  alignas(16) float last[D];                                           // exp(G_last)
  alignas(16) uint16_t solve[kChunk][24], qk[kChunk][24];              // (I + A)^-1 diag(beta); q_i . E_ij k_j
  float a[kChunk][kChunk + 1], beta[kChunk];
};

template <Config c, Tile t> struct Chunks {
  static constexpr int D = c.head_dim, kParts = D / 8, kThreads = t.threads(), kKeyTiles = D / 8;
  static_assert(kThreads == 2 * D && sizeof(ChunkShared<D>) <= (uint64_t)t.smem(c));

  const Args &args;
  ChunkShared<D> &x;
  int head;
  float state[kKeyTiles][4]; // S^T: values 16 warp + g, + 8; keys 8 n + 2 q, + 1
  // The thread's 8 values of a token of the next chunk.
  uint4 raw_q, raw_k, raw_v;
  float g[8], beta;

  K31_DEVICE Chunks(const Args &args, ChunkShared<D> &x, int head) : args(args), x(x), head(head) {}

  K31_DEVICE void fetch(int64_t row, int64_t end) {
    const int token = threadIdx.x / kParts, part = threadIdx.x % kParts;
    raw_q = raw_k = raw_v = make_uint4(0, 0, 0, 0), beta = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      g[i] = 0;
    if (row + token >= end)
      return;
    const int64_t at = (row + token) * c.ld_qkv + (int64_t)head * D + part * 8;
    raw_q = *(const uint4 *)((const uint16_t *)args.q + at), raw_k = *(const uint4 *)((const uint16_t *)args.k + at);
    raw_v = *(const uint4 *)((const uint16_t *)args.v + at);
    load_values<DType::f32>(args.g, (row + token) * c.ld_g + (int64_t)head * D + part * 8, g);
    beta = args.beta[(row + token) * c.ld_beta + head];
  }
  static K31_DEVICE void widen(uint4 v, float (&to)[8]) {
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      to[2 * i] = bf16_low(w[i]), to[2 * i + 1] = bf16_high(w[i]);
  }
  static K31_DEVICE uint4 narrow(const float (&v)[8]) {
    return make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
  }

  // What was fetched goes to shared memory: q and k normalised, q scaled, g in base 2.
  K31_DEVICE void place() {
    const int token = threadIdx.x / kParts, part = threadIdx.x % kParts;
    float q[8], k[8], qq = 0, kk = 0;
    widen(raw_q, q), widen(raw_k, k);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      qq += q[i] * q[i], kk += k[i] * k[i];
    qq = warp_sum<kParts>(qq), kk = warp_sum<kParts>(kk);
    const float q_scale = 1 / (sqrtf(qq + 1e-6f) * sqrtf((float)D)), k_scale = 1 / sqrtf(kk + 1e-6f);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      q[i] *= q_scale, k[i] *= k_scale, g[i] *= 1.44269504088896341f;
    store_values<DType::f32>(&x.q[token][part * 8], 0, q), store_values<DType::f32>(&x.k[token][part * 8], 0, k);
    store_values<DType::f32>(&x.g[token][part * 8], 0, g);
    *(uint4 *)&x.v[token][part * 8] = raw_v;
    if (part == 0)
      x.beta[token] = beta;
  }
  K31_DEVICE void sum_decays() { // a thread a key channel
    if (threadIdx.x >= D)
      return;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      x.g[i][threadIdx.x] = sum += x.g[i][threadIdx.x];
    x.last[threadIdx.x] = exp2f(sum);
  }
  // Operands that decay from the chunk's start or to its end.
  K31_DEVICE void decay_operands() {
    const int token = threadIdx.x / kParts, part = threadIdx.x % kParts;
    float q[8], k[8], sum[8], last[8], pk[8], pq[8], kd[8];
    load_values<DType::f32>(&x.q[token][part * 8], 0, q), load_values<DType::f32>(&x.k[token][part * 8], 0, k);
    load_values<DType::f32>(&x.g[token][part * 8], 0, sum), load_values<DType::f32>(&x.g[kChunk - 1][part * 8], 0, last);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float p = exp2f(sum[i]);
      pk[i] = p * k[i], pq[i] = p * q[i], kd[i] = exp2f(last[i] - sum[i]) * k[i];
    }
    *(uint4 *)&x.pk[token][part * 8] = narrow(pk), *(uint4 *)&x.pq[token][part * 8] = narrow(pq);
    *(uint4 *)&x.kd[token][part * 8] = narrow(kd);
  }
  // Products of pairs of tokens, a thread a pair.
  K31_DEVICE void pairs() {
    for (int pair = threadIdx.x; pair < kChunk * kChunk; pair += kThreads) {
      const int i = pair / kChunk, j = pair % kChunk;
      float kk = 0, qk = 0;
      if (j <= i) {
#pragma unroll 4
        for (int d = 0; d < D; d += 4) {
          const float4 gi = *(const float4 *)&x.g[i][d], gj = *(const float4 *)&x.g[j][d], kj = *(const float4 *)&x.k[j][d];
          const float4 ki = *(const float4 *)&x.k[i][d], qi = *(const float4 *)&x.q[i][d];
          float e = exp2f(gi.x - gj.x) * kj.x;
          kk += ki.x * e, qk += qi.x * e;
          e = exp2f(gi.y - gj.y) * kj.y;
          kk += ki.y * e, qk += qi.y * e;
          e = exp2f(gi.z - gj.z) * kj.z;
          kk += ki.z * e, qk += qi.z * e;
          e = exp2f(gi.w - gj.w) * kj.w;
          kk += ki.w * e, qk += qi.w * e;
        }
      }
      x.a[i][j] = j < i ? x.beta[i] * kk : 0;
      x.qk[i][j] = to_bf16(qk); // zero above the diagonal
    }
  }
  // (I + A)^-1 diag(beta), a thread a column of the inverse.
  K31_DEVICE void solve() {
    const int column = threadIdx.x;
    if (column >= kChunk)
      return;
    float y[kChunk];
    const float b = x.beta[column];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      float sum = i == column ? 1 : 0;
#pragma unroll
      for (int j = 0; j < i; ++j)
        sum -= x.a[i][j] * y[j];
      y[i] = sum;
      x.solve[i][column] = to_bf16(sum * b);
    }
  }
  // B^T rows [16 tokens, 16 of k] at `rows` as the fragments of tokens 0..7 and 8..15.
  static K31_DEVICE void load_rows(uint32_t (&b)[4], const uint16_t *rows, int ld, int k) {
    const int lane = lane_id();
    load_matrices(b, rows + (lane / 16 * 8 + lane % 8) * ld + k + lane / 8 % 2 * 8);
  }
  static K31_DEVICE void as_operand(const float (&v)[2][4], uint32_t (&a)[4]) {
    a[0] = pack_bf16(v[0][0], v[0][1]), a[1] = pack_bf16(v[0][2], v[0][3]);
    a[2] = pack_bf16(v[1][0], v[1][1]), a[3] = pack_bf16(v[1][2], v[1][3]);
  }
  // A warp's 16 values for the whole chunk; accumulators are [values, tokens].
  K31_DEVICE void advance(int64_t row, int64_t end) {
    constexpr int kHalf = ChunkShared<D>::kHalfRow;
    const int lane = lane_id(), value = warp_id() * 16 + lane / 4, token = lane % 4 * 2;
    float u[2][4] = {}, o[2][4] = {}, delta[2][4] = {};
    uint32_t a[4], b[4];
#pragma unroll
    for (int n = 0; n < kKeyTiles; n += 2) {
      a[0] = pack_bf16(state[n][0], state[n][1]), a[1] = pack_bf16(state[n][2], state[n][3]);
      a[2] = pack_bf16(state[n + 1][0], state[n + 1][1]), a[3] = pack_bf16(state[n + 1][2], state[n + 1][3]);
      load_rows(b, &x.pk[0][0], kHalf, n * 8);
      mma_bf16(u[0], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(u[1], a[0], a[1], a[2], a[3], b[2], b[3]);
      load_rows(b, &x.pq[0][0], kHalf, n * 8);
      mma_bf16(o[0], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(o[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        u[n][i] = from_bf16(x.v[n * 8 + token + i % 2][value + i / 2 * 8]) - u[n][i];
    as_operand(u, a);
    load_rows(b, &x.solve[0][0], 24, 0);
    mma_bf16(delta[0], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(delta[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    as_operand(delta, a);
    load_rows(b, &x.qk[0][0], 24, 0);
    mma_bf16(o[0], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(o[1], a[0], a[1], a[2], a[3], b[2], b[3]);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t r = row + n * 8 + token + i % 2;
        if (r < end)
          store<c.out_type>(args.out, r * c.ld_out + (int64_t)head * D + value + i / 2 * 8, o[n][i]);
      }
#pragma unroll
    for (int n = 0; n < kKeyTiles; n += 2) {
#pragma unroll
      for (int m = n; m < n + 2; ++m) {
        const float2 p = *(const float2 *)&x.last[m * 8 + token];
        state[m][0] *= p.x, state[m][1] *= p.y, state[m][2] *= p.x, state[m][3] *= p.y;
      }
      // Tokens 0..7 and 8..15 of keys 8 n .., then of the next 8 keys.
      load_matrices_transposed(b, &x.kd[lane / 8 % 2 * 8 + lane % 8][n * 8 + lane / 16 * 8]);
      mma_bf16(state[n], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(state[n + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }

  K31_DEVICE void run(const Segment &s) {
    const int lane = lane_id(), value = warp_id() * 16 + lane / 4, key = lane % 4 * 2;
    const float *from = args.state + ((int64_t)s.slot_in * c.heads + head) * D * D;
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        state[n][i] = s.slot_in < 0 ? 0 : from[(n * 8 + key + i % 2) * D + value + i / 2 * 8];
    const int64_t end = (int64_t)s.row_begin + s.length;
    fetch(s.row_begin, end);
    for (int64_t row = s.row_begin; row < end; row += kChunk) {
      place();
      fetch(row + kChunk, end);
      __syncthreads();
      sum_decays();
      __syncthreads();
      decay_operands();
      pairs();
      __syncthreads();
      solve();
      __syncthreads();
      advance(row, end);
      __syncthreads();
    }
    float *to = args.state + ((int64_t)s.slot_out * c.heads + head) * D * D;
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        to[(n * 8 + key + i % 2) * D + value + i / 2 * 8] = state[n][i];
  }
};

} // namespace k31::kernels::kda
