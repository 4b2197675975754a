// CUDA kernel of attn.kda_decode: a block takes one (segment, head), since the norm needs all values of a head.
//
// A token has three barriers: the convolution gives q, k and v and with the decay the factors of the state; all threads see the
// state (kda_state.cuh); the threads of v add up, with the scales of q and k, which are linear and so come behind the sums; then
// all update the state while one warp runs the row op on what the others read. The inputs of the next token, or of the next unit
// and its state, are on their way from the first barrier on: a state by cp.async into places of shared memory that only its
// thread reads, the rest in registers. No segment may write a slot that another one of the entry reads.
#pragma once
#include "codegen/kernels/attn/kda_decode.tile.h"
#include "codegen/kernels/attn/kda_state.cuh"
#include "codegen/kernels/nn/row.cuh"

namespace k31::kernels::kda_decode {

template <Config c, Tile t> struct Shape {
  static constexpr int D = c.kda.head_dim, H = c.kda.heads;
  using State = kernels::kda::State<D, D, t.groups(c)>;
  static_assert(D % 4 == 0 && D <= kMaxCudaDim,
                "attn.kda_decode on CUDA takes heads of up to kMaxCudaDim values, a multiple of 4");
  static_assert(t.block >= 2 * D && t.block % 32 == 0, "a thread has q and k of a channel, or v");
  static_assert(c.conv.channels == 3 * H * D && c.row.cols == H * D && c.row.groups == H && c.row.phases > 0);
};

template <Config c, Tile t> struct Shared {
  using State = typename Shape<c, t>::State;
  static constexpr int D = Shape<c, t>::D;
  kernels::kda::Factors<D> token[2]; // q and k not normalised
  float q[2][D];
  alignas(16) typename State::Parts part[2];      // (a k)^T S, then (a q)^T S
  alignas(16) float delta[D], out[D];             // delta with the scale of k; what the row op gets
  alignas(16) float4 next[State::kKeys][t.block]; // the next state
};

template <DType T> K31_DEVICE float rounded(float v) {
  Raw<T, 1> raw;
  raw.set(&v);
  return raw.get(0);
}

// The convolution of a thread's channels, and what else it needs of a token. Thread d < D has q and k of channel d and the decay,
// thread D + d has v and beta. Inputs stay as they were read, so that nothing waits for them before the token's turn.
template <Config c, class Region> struct Channels {
  static constexpr int D = c.kda.head_dim, kTaps = c.conv.taps, kPast = kTaps - 1;
  static constexpr bool kHalf = c.conv.x_type == DType::bf16 && c.conv.window_type == DType::bf16;
  static constexpr DType kType = kHalf ? DType::bf16 : DType::f32;
  using Input = Raw<kType, 1>;

  const Args &args;
  const bool keys, values; // of which kind this thread is
  const int d;
  Input x[2], window[2][kPast > 0 ? kPast : 1]; // oldest first
  float taps[2][kTaps];
  float g, beta;

  K31_DEVICE explicit Channels(const Args &args)
      : args(args), keys(threadIdx.x < D), values(!keys && threadIdx.x < 2 * D), d((int)threadIdx.x - (keys ? 0 : D)) {}

  // Calls f(number, channel) for each channel of this thread.
  template <class F> K31_DEVICE void for_channels(int head, F f) const {
    constexpr int kWidth = c.kda.heads * D;
    if (keys || values)
      f(0, (keys ? 0 : 2 * kWidth) + head * D + d);
    if (keys)
      f(1, kWidth + head * D + d);
  }
  template <DType T> static K31_DEVICE void load_input(const void *p, int64_t at, Input &v) {
    if constexpr (T == kType) {
      v.load(p, at);
    } else {
      const float wide = load<T>(p, at);
      v.set(&wide);
    }
  }
  K31_DEVICE void load_token(int64_t row, int head) {
    for_channels(head, [&](int i, int channel) { load_input<c.conv.x_type>(args.x, row * c.conv.ld_x + channel, x[i]); });
    if (keys)
      g = args.g[row * c.kda.ld_g + head * D + d];
    if (values)
      beta = args.beta[row * c.kda.ld_beta + head];
  }
  // The window and the taps too.
  K31_DEVICE void load_first(const Segment &s, int head) {
    const bool vectors = aligned16(args.w);
    for_channels(head, [&](int i, int channel) {
#pragma unroll
      for (int j = 0; j < kPast; ++j) {
        window[i][j].word[0] = 0;
        if (s.slot_in >= 0)
          load_input<c.conv.window_type>(args.window, ((int64_t)s.slot_in * kPast + j) * c.conv.channels + channel, window[i][j]);
      }
      if (kTaps % 2 == 0 && vectors) {
        load_values<c.conv.w_type>(args.w, (int64_t)channel * kTaps, taps[i]);
      } else {
#pragma unroll
        for (int j = 0; j < kTaps; ++j)
          taps[i][j] = load<c.conv.w_type>(args.w, (int64_t)channel * kTaps + j);
      }
    });
    load_token(s.row_begin, head);
  }
  // The output of channel i; its input goes into the window.
  K31_DEVICE float step(int i) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kPast; ++j)
      sum += taps[i][j] * window[i][j].get(0);
    sum += taps[i][kPast] * x[i].get(0);
#pragma unroll
    for (int j = 0; j < kPast; ++j)
      window[i][j] = j + 1 < kPast ? window[i][j + 1 < kPast ? j + 1 : j] : x[i];
    if constexpr (c.conv.epilogue != 0) {
      const float before = sum;
      kernels::row::region<Region, activation_phase(c)>(&before, &sum);
    }
    return rounded<c.conv.out_type>(sum);
  }
  K31_DEVICE void store_window(const Segment &s, int head) const {
    for_channels(head, [&](int i, int channel) {
#pragma unroll
      for (int j = 0; j < kPast; ++j) {
        const int64_t at = ((int64_t)s.slot_out * kPast + j) * c.conv.channels + channel;
        if constexpr (c.conv.window_type == kType)
          window[i][j].store(args.window, at);
        else
          store<c.conv.window_type>(args.window, at, window[i][j].get(0));
      }
    });
  }
};

template <Config c, Tile t, class Region> struct Decode {
  static constexpr int D = Shape<c, t>::D, H = Shape<c, t>::H;
  static constexpr kernels::row::Tile kRowTile{.block = 32, .team = 32, .vector = 1};
  using State = typename Shape<c, t>::State;
  using Row = kernels::row::Unit<c.row, kRowTile, Region, 1, true>;

  const Args &args;
  Shared<c, t> &x;
  const kernels::row::Args of_row;
  Channels<c, Region> channels;
  State state;

  K31_DEVICE Decode(const Args &args, Shared<c, t> &x)
      : args(args), x(x), of_row(kernels::row::args_of<c>(args, args.batch.counts)), channels(args) {}

  K31_DEVICE float *state_of(int slot, int head) const { return args.state + ((int64_t)slot * H + head) * (D * D); }
  K31_DEVICE void fetch_state(const Segment &s, int head) {
    const bool stored = s.slot_in >= 0;
    const float *from = state_of(stored ? s.slot_in : 0, head) + state.group * D + 4 * state.lane;
    if (state.active)
      state.for_keys([&](int, int i) { copy_async16(&x.next[i][threadIdx.x], from + i * State::kStride, stored ? 16 : 0); });
    copy_commit();
  }
  K31_DEVICE void take_state() {
    copy_wait<0>();
    if (state.active)
      state.for_keys([&](int, int i) { state.s[i] = x.next[i][threadIdx.x]; });
  }
  // The scales of q and k, and their product normalised: by every warp for itself.
  K31_DEVICE kernels::kda::Scales<D> scales(const float *q, const float *k, float &qk) const {
    float qq = 0, kk = 0;
    qk = 0;
#pragma unroll
    for (int i = 0; i < (D + 31) / 32; ++i) {
      const int d = lane_id() + 32 * i;
      const float one = d < D ? q[d] : 0, other = d < D ? k[d] : 0;
      qq += one * one, kk += other * other, qk += one * other;
    }
    qq = warp_sum(qq), kk = warp_sum(kk), qk = warp_sum(qk);
    const kernels::kda::Scales<D> scale(qq, kk);
    qk = qk * scale.q * scale.k;
    return scale;
  }

  // One token. ahead() asks for what comes behind it.
  template <class Ahead> K31_DEVICE void token(const Segment &s, int head, int i, uint32_t turn, Ahead ahead) {
    const int64_t row = (int64_t)s.row_begin + i;
    const bool last = i + 1 == s.length, of_row_op = warp_id() == t.block / 32 - 1;
    Row unit{of_row, row, head * D, head * D + D, 0};
    if (of_row_op)
      unit.template keep<c.at>();
    auto &token = x.token[turn];
    float v = 0;
    const float beta = channels.beta;
    if (channels.keys) {
      const int d = channels.d;
      const float q = channels.step(0), k = channels.step(1), a = expf(channels.g);
      x.q[turn][d] = q, token.k[d] = k, token.a[d] = a, token.aq[d] = q * a, token.ak[d] = k * a;
    } else if (channels.values) {
      v = channels.step(0);
    }
    if (last)
      channels.store_window(s, head);
    if (i == 0)
      take_state();
    __syncthreads();
    ahead();
    float qk;
    const auto scale = scales(x.q[turn], token.k, qk);
    state.see(token, x.part[0], x.part[1]);
    __syncthreads();
    if (channels.values) {
      float u, o;
      State::add_up(x.part[0], x.part[1], channels.d, u, o);
      const float delta = (v - u * scale.k) * beta;
      x.delta[channels.d] = delta * scale.k, x.out[channels.d] = o * scale.q + delta * qk;
    }
    __syncthreads();
    state.update(token, x.delta);
    if (last)
      state.store(state_of(s.slot_out, head));
    if (of_row_op) {
      static_assert(Row::template is_element<c.at> && Row::template type_of<c.at> == c.kda.out_type);
      unit.for_accesses([&](int32_t col, int a) {
        Raw<c.kda.out_type, 1> raw; // rounded as it would be stored
        raw.set(&x.out[col - unit.begin]);
        unit.kept[a][c.at][0] = raw.word[0];
      });
      unit.template phases_from<0>();
    }
  }

  K31_DEVICE void run() {
    const int units = args.batch.counts[1] * H;
    int u = blockIdx.x;
    if (u >= units)
      return;
    Segment s = args.batch.segments[u / H];
    int head = u % H;
    fetch_state(s, head);
    channels.load_first(s, head);
    Segment next = s;
    bool more = false;
    int i = 0;
    // Tokens of all units in one loop: their factors have two places, as some threads read them while others write the next.
    for (uint32_t turn = 0;; turn ^= 1) {
      if (i == 0) {
        u += gridDim.x, more = u < units;
        if (more)
          next = args.batch.segments[u / H];
      }
      const bool last = i + 1 == s.length;
      token(s, head, i, turn, [&] {
        if (i == 0 && more)
          fetch_state(next, u % H);
        if (!last)
          channels.load_token(s.row_begin + i + 1, head);
        else if (more)
          channels.load_first(next, u % H);
      });
      ++i;
      if (!last)
        continue;
      if (!more)
        return;
      s = next, head = u % H, i = 0;
    }
  }
};

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  static_assert(sizeof(Shared<c, t>) == t.smem(c));
  Decode<c, t, Region>(args, *(Shared<c, t> *)shared_memory()).run();
}

} // namespace k31::kernels::kda_decode
