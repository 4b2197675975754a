// The chunk form of attn.kda by tensor cores: 16 tokens a step, one block a (segment, head).
//
// With G_i the sum of g up to token i, E_ij = exp(G_i - G_j) (j <= i, so never above 1), A_ij = beta_i k_i . E_ij k_j (j < i):
//   delta = (I + A)^-1 diag(beta) (V - exp(G) K S),   o = exp(G) Q S + (Q . E K) delta,   S <- exp(G_last) S + (E_last K)^T delta
// which is section 3.1 of the model's description. Half of the threads prepare chunks in shared memory ahead
// (kda_prepare.cuh): only what needs the state is done in turn. Of the other half each warp takes 16 values alone: S^T [16, keys]
// stays in its registers as fp32 accumulators, whose layout is also that of the A operand, so that state, V - U and delta never
// leave them. Tokens past the end are zero.
#pragma once
#include "codegen/kernels/attn/kda_prepare.cuh"

namespace k31::kernels::kda {

template <int D> struct ChunkShared {
  ChunkStage<D> stage[kChunkStages];
  ChunkScratch<D> scratch[2];
};

template <Config c, Tile t> struct Chunks {
  static constexpr int D = c.head_dim, kKeyTiles = D / 8, kHolders = 2 * D;
  static_assert(t.threads() == 2 * kHolders && sizeof(ChunkShared<D>) <= (uint64_t)t.barriers_at(c));
  using Prepare = Preparation<c, t>;

  const Args &args;
  ChunkShared<D> &shared;
  Barrier *full, *empty; // [kChunkStages]
  uint32_t chunk = 0;    // so far: that of stage chunk % kChunkStages and of group chunk % 2

  // All threads.
  K31_DEVICE Chunks(const Args &args, unsigned char *at)
      : args(args), shared(*(ChunkShared<D> *)at), full((Barrier *)(at + t.barriers_at(c))), empty(full + kChunkStages) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < kChunkStages; ++s)
        barrier_init(full + s, D), barrier_init(empty + s, kHolders);
      barrier_init_done();
    }
    __syncthreads();
  }

  K31_DEVICE void run(const Segment &s, int head) {
    if (threadIdx.x < kHolders)
      hold(s, head);
    else
      prepare(s, head);
  }

private:
  float state[kKeyTiles][4]; // S^T: values 16 warp + g, + 8; keys 8 n + 2 q, + 1

  K31_DEVICE void prepare(const Segment &s, int head) {
    const int thread = threadIdx.x - kHolders, group = thread / D;
    Prepare of(args, shared.scratch[group], thread % D, 1 + group);
    const int64_t end = (int64_t)s.row_begin + s.length;
    const uint32_t not_mine = chunk % 2 != group, chunks = (uint32_t)ceil_div(s.length, kChunk);
    int64_t row = s.row_begin + not_mine * kChunk;
    of.fetch(head, row, end);
    for (uint32_t n = chunk + not_mine; n < chunk + chunks; n += 2, row += 2 * kChunk) {
      const uint32_t stage = n % kChunkStages;
      barrier_wait(empty + stage, n / kChunkStages % 2 ^ 1);
      of.prepare(shared.stage[stage], [&] { of.fetch(head, row + 2 * kChunk, end); });
      barrier_arrive(full + stage);
    }
    chunk += chunks;
  }
  static K31_DEVICE void as_operand(const float (&v)[2][4], uint32_t (&a)[4]) {
    a[0] = pack_bf16(v[0][0], v[0][1]), a[1] = pack_bf16(v[0][2], v[0][3]);
    a[2] = pack_bf16(v[1][0], v[1][1]), a[3] = pack_bf16(v[1][2], v[1][3]);
  }
  // A warp's 16 values for the whole chunk; accumulators are [values, tokens].
  K31_DEVICE void advance(const ChunkStage<D> &x, int head, int64_t row, int64_t end) {
    constexpr int kHalf = D + 8;
    const int lane = lane_id(), value = warp_id() * 16 + lane / 4, token = lane % 4 * 2;
    float u[2][4] = {}, o[2][4] = {}, delta[2][4] = {};
    uint32_t a[4], b[4];
#pragma unroll
    for (int n = 0; n < kKeyTiles; n += 2) {
      a[0] = pack_bf16(state[n][0], state[n][1]), a[1] = pack_bf16(state[n][2], state[n][3]);
      a[2] = pack_bf16(state[n + 1][0], state[n + 1][1]), a[3] = pack_bf16(state[n + 1][2], state[n + 1][3]);
      Prepare::load_rows(b, &x.pk[0][0], kHalf, n * 8);
      mma_bf16(u[0], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(u[1], a[0], a[1], a[2], a[3], b[2], b[3]);
      Prepare::load_rows(b, &x.pq[0][0], kHalf, n * 8);
      mma_bf16(o[0], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(o[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        u[n][i] = from_bf16(x.v[n * 8 + token + i % 2][value + i / 2 * 8]) - u[n][i];
    as_operand(u, a);
    Prepare::load_rows(b, &x.solve[0][0], 24, 0);
    mma_bf16(delta[0], a[0], a[1], a[2], a[3], b[0], b[1]), mma_bf16(delta[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    as_operand(delta, a);
    Prepare::load_rows(b, &x.qk[0][0], 24, 0);
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

  K31_DEVICE void hold(const Segment &s, int head) {
    const int lane = lane_id(), value = warp_id() * 16 + lane / 4, key = lane % 4 * 2;
    const float *from = args.state + ((int64_t)s.slot_in * c.heads + head) * D * D;
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        state[n][i] = s.slot_in < 0 ? 0 : from[(n * 8 + key + i % 2) * D + value + i / 2 * 8];
    const int64_t end = (int64_t)s.row_begin + s.length;
    for (int64_t row = s.row_begin; row < end; row += kChunk, ++chunk) {
      const uint32_t stage = chunk % kChunkStages;
      barrier_wait(full + stage, chunk / kChunkStages % 2);
      advance(shared.stage[stage], head, row, end);
      barrier_arrive(empty + stage);
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
