// CUDA kernel of attn.kda: a block takes one (segment, head, slice of values); columns of the state do not meet.
//
// Token by token, with the state in registers (kda_state.cuh). Long segments in bf16 go by chunks (kda_chunk.cuh). Decode reads
// and writes each state once, 16 bytes a thread; warp 0 prepares the token meanwhile.
#pragma once
#include "codegen/kernels/attn/kda.tile.h"
#include "codegen/kernels/attn/kda_chunk.cuh"
#include "codegen/kernels/attn/kda_state.cuh"

namespace k31::kernels::kda {

template <Config c, Tile t> struct Shape {
  static constexpr int kValues = t.slice(c), kSlices = c.head_dim / kValues;
  using State = kda::State<c.head_dim, kValues, t.groups(c)>;
  static_assert(State::kLanes <= t.threads() && kValues <= t.threads());
};

// What all threads need of a token.
template <int D> struct Token : Factors<D> {
  float qk, beta, unused[2];
};
template <Config c, Tile t> struct Shared {
  using S = Shape<c, t>;
  Token<c.head_dim> token[2];
  alignas(16) typename S::State::Parts part[2]; // u, then (a q)^T S
  alignas(16) float delta[S::kValues];
};

// By one warp: q and k normalised, q scaled, the decay a = exp(g).
template <Config c> K31_DEVICE void load_token(const Args &args, int64_t row, int head, Token<c.head_dim> &x) {
  constexpr int D = c.head_dim, kSteps = (D + 31) / 32;
  const int lane = threadIdx.x % 32;
  const int64_t at = row * c.ld_qkv + (int64_t)head * D, at_g = row * c.ld_g + (int64_t)head * D;
  float q[kSteps], k[kSteps], g[kSteps], qq = 0, kk = 0, qk = 0;
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    const int d = lane + 32 * i;
    const bool in = d < D;
    q[i] = in ? load<c.qkv_type>(args.q, at + d) : 0;
    k[i] = in ? load<c.qkv_type>(args.k, at + d) : 0;
    g[i] = in ? args.g[at_g + d] : 0;
  }
#pragma unroll
  for (int i = 0; i < kSteps; ++i)
    qq += q[i] * q[i], kk += k[i] * k[i], qk += q[i] * k[i];
  qq = warp_sum(qq), kk = warp_sum(kk), qk = warp_sum(qk);
  const Scales<D> scale(qq, kk);
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    const int d = lane + 32 * i;
    if (d < D) {
      const float a = expf(g[i]);
      x.a[d] = a, x.k[d] = k[i] * scale.k, x.ak[d] = k[i] * scale.k * a, x.aq[d] = q[i] * scale.q * a;
    }
  }
  if (lane == 0)
    x.qk = qk * scale.q * scale.k, x.beta = args.beta[row * c.ld_beta + head];
}

template <Config c, Tile t> K31_DEVICE void segment(const Args &args, const Segment &s, int head, int first, Shared<c, t> &x) {
  using State = typename Shape<c, t>::State;
  constexpr int D = c.head_dim, V = Shape<c, t>::kValues;
  constexpr int64_t size = (int64_t)D * D;
  const int thread = threadIdx.x;
  State state;
  const float *from = args.state + ((int64_t)s.slot_in * c.heads + head) * size + first + 4 * state.lane;
#pragma unroll
  for (int i = 0; i < State::kKeys; ++i) {
    const int d = state.group + i * t.groups(c);
    state.s[i] = float4{0, 0, 0, 0};
    if (state.active && d < D && s.slot_in >= 0)
      state.s[i] = *(const float4 *)(from + (int64_t)d * D);
  }
  for (int i = 0; i < s.length; ++i) {
    const int64_t row = (int64_t)s.row_begin + i;
    Token<D> &token = x.token[i % 2];
    if (thread < 32)
      load_token<c>(args, row, head, token);
    float v = 0;
    if (thread < V)
      v = load<c.qkv_type>(args.v, row * c.ld_qkv + (int64_t)head * D + first + thread);
    __syncthreads();
    state.see(token, x.part[0], x.part[1]);
    __syncthreads();
    if (thread < V) {
      float u, o;
      State::add_up(x.part[0], x.part[1], thread, u, o);
      const float delta = (v - u) * token.beta;
      x.delta[thread] = delta;
      store<c.out_type>(args.out, row * c.ld_out + (int64_t)head * D + first + thread, o + delta * token.qk);
    }
    __syncthreads();
    state.update(token, x.delta);
  }
  state.store(args.state + ((int64_t)s.slot_out * c.heads + head) * size + first);
  __syncthreads(); // the next unit's token may take the place of this one's
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  using S = Shape<c, t>;
  static_assert(sizeof(Shared<c, t>) == t.token_bytes(c));
  auto &x = *(Shared<c, t> *)shared_memory();
  const int64_t segments = args.batch.counts[1];
  if constexpr (t.chunks(c)) {
    if (aligned16(args.q) && aligned16(args.k) && aligned16(args.v) && aligned16(args.g)) {
      Chunks<c, t> chunks(args, shared_memory());
      for (int64_t u = blockIdx.x; u < segments * c.heads; u += gridDim.x) {
        const Segment s = args.batch.segments[u / c.heads];
        const int head = (int)(u % c.heads);
        if (s.length >= kChunk) {
          chunks.run(s, head);
        } else {
          __syncthreads(); // tokens take the place of chunks
          for (int i = 0; i < S::kSlices; ++i)
            segment<c, t>(args, s, head, i * S::kValues, x);
        }
      }
      return;
    }
  }
  const int64_t units = segments * c.heads * S::kSlices;
  for (int64_t u = blockIdx.x; u < units; u += gridDim.x) {
    const int64_t head = u / S::kSlices % c.heads;
    segment<c, t>(args, args.batch.segments[u / (S::kSlices * c.heads)], (int)head, (int)(u % S::kSlices) * S::kValues, x);
  }
}

} // namespace k31::kernels::kda
