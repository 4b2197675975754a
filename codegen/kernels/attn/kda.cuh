// CUDA kernel of attn.kda: a block takes one (segment, head, slice of values); columns of the state do not meet.
//
// Token by token, with the state in registers: thread (g, l) holds keys g, g + G, ... of the four values 4 l .. 4 l + 3. One pass
// gives u = (a k)^T S and (a q)^T S, then delta = beta (v - u), o = (a q)^T S + (q . k) delta and S <- a S + k delta, the order
// of the host kernel. Long segments in bf16 go by chunks (kda_chunk.cuh). Decode reads and writes each state once, 16 bytes a
// thread; warp 0 prepares the token meanwhile.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/attn/kda.tile.h"
#include "codegen/kernels/attn/kda_chunk.cuh"

namespace k31::kernels::kda {

template <Config c, Tile t> struct Shape {
  static constexpr int kDim = c.head_dim;
  static constexpr int kValues = t.slice(c);
  static constexpr int kSlices = kDim / kValues;
  static constexpr int kLanes = kValues / 4;                   // threads across a key row
  static constexpr int kGroups = t.groups(c);                  // key rows at once
  static constexpr int kKeys = (kDim + kGroups - 1) / kGroups; // keys of a thread
  static_assert(kLanes <= t.threads() && kValues <= t.threads());
};

// What all threads need of a token.
template <int D> struct Token {
  float aq[D], ak[D], a[D], k[D];
  float qk, beta, unused[2];
};
template <Config c, Tile t> struct Shared {
  using S = Shape<c, t>;
  Token<c.head_dim> token[2];
  alignas(16) float part[2][S::kGroups][S::kValues]; // u, then (a q)^T S, of each group of keys
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
  const float q_scale = 1 / (sqrtf(qq + 1e-6f) * sqrtf((float)D)), k_scale = 1 / sqrtf(kk + 1e-6f);
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    const int d = lane + 32 * i;
    if (d < D) {
      const float a = expf(g[i]);
      x.a[d] = a, x.k[d] = k[i] * k_scale, x.ak[d] = k[i] * k_scale * a, x.aq[d] = q[i] * q_scale * a;
    }
  }
  if (lane == 0)
    x.qk = qk * q_scale * k_scale, x.beta = args.beta[row * c.ld_beta + head];
}

template <Config c, Tile t> K31_DEVICE void segment(const Args &args, const Segment &s, int head, int first, Shared<c, t> &x) {
  using S = Shape<c, t>;
  constexpr int D = S::kDim, V = S::kValues;
  const int thread = threadIdx.x, group = thread / S::kLanes, lane = thread % S::kLanes;
  const bool active = group < S::kGroups;
  const int64_t size = (int64_t)D * D;
  float4 state[S::kKeys];
  const float *from = args.state + ((int64_t)s.slot_in * c.heads + head) * size + first + 4 * lane;
#pragma unroll
  for (int i = 0; i < S::kKeys; ++i) {
    const int d = group + i * S::kGroups;
    state[i] = float4{0, 0, 0, 0};
    if (active && d < D && s.slot_in >= 0)
      state[i] = *(const float4 *)(from + (int64_t)d * D);
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
    if (active) {
      float4 u{0, 0, 0, 0}, o{0, 0, 0, 0};
#pragma unroll
      for (int j = 0; j < S::kKeys; ++j) {
        const int d = group + j * S::kGroups;
        if (D % S::kGroups == 0 || d < D) {
          const float k = token.ak[d], q = token.aq[d];
          u.x += state[j].x * k, u.y += state[j].y * k, u.z += state[j].z * k, u.w += state[j].w * k;
          o.x += state[j].x * q, o.y += state[j].y * q, o.z += state[j].z * q, o.w += state[j].w * q;
        }
      }
      *(float4 *)&x.part[0][group][4 * lane] = u;
      *(float4 *)&x.part[1][group][4 * lane] = o;
    }
    __syncthreads();
    if (thread < V) {
      float u = 0, o = 0;
#pragma unroll
      for (int g = 0; g < S::kGroups; ++g)
        u += x.part[0][g][thread], o += x.part[1][g][thread];
      const float delta = (v - u) * token.beta;
      x.delta[thread] = delta;
      store<c.out_type>(args.out, row * c.ld_out + (int64_t)head * D + first + thread, o + delta * token.qk);
    }
    __syncthreads();
    if (active) {
      const float4 delta = *(const float4 *)&x.delta[4 * lane];
#pragma unroll
      for (int j = 0; j < S::kKeys; ++j) {
        const int d = group + j * S::kGroups;
        if (D % S::kGroups == 0 || d < D) {
          const float a = token.a[d], k = token.k[d];
          state[j].x = state[j].x * a + delta.x * k, state[j].y = state[j].y * a + delta.y * k;
          state[j].z = state[j].z * a + delta.z * k, state[j].w = state[j].w * a + delta.w * k;
        }
      }
    }
  }
  float *to = args.state + ((int64_t)s.slot_out * c.heads + head) * size + first + 4 * lane;
#pragma unroll
  for (int i = 0; i < S::kKeys; ++i) {
    const int d = group + i * S::kGroups;
    if (active && d < D)
      *(float4 *)(to + (int64_t)d * D) = state[i];
  }
  __syncthreads(); // the next unit's token may take the place of this one's
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  using S = Shape<c, t>;
  static_assert(sizeof(Shared<c, t>) == t.token_bytes(c));
  auto &x = *(Shared<c, t> *)shared_memory();
  const int64_t segments = args.batch.counts[1];
  if constexpr (t.chunks(c)) {
    if (aligned16(args.q) && aligned16(args.k) && aligned16(args.v) && aligned16(args.g)) {
      for (int64_t u = blockIdx.x; u < segments * c.heads; u += gridDim.x) {
        const Segment s = args.batch.segments[u / c.heads];
        const int head = (int)(u % c.heads);
        if (s.length >= kChunk) {
          Chunks<c, t>(args, *(ChunkShared<c.head_dim> *)shared_memory(), head).run(s);
        } else {
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
