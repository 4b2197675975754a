// attn.kda_decode on CUDA against plain loops in fp64, and against the three kernels that it is made of: outputs, states,
// windows, forks, every kind of decay, more units than blocks.
#include "codegen/kernels/attn/kda.cuh"
#include "codegen/kernels/attn/kda_decode.cuh"
#include "codegen/kernels/attn/short_conv.cuh"
#include "test/kernels/common/decay.h"
#include "test/kernels/cuda/batch.h"

K31_CUDA_KERNEL_BY_TYPE(kda_decode)

namespace {
using namespace k31::test;
using namespace k31::kernels::kda_decode;
using k31::kernels::OperandKind, k31::kernels::inverse_root, k31::kernels::quotient;
namespace attn = k31::kernels;

constexpr int kSlots = 9;
constexpr float kEpsilon = 1e-5f;
constexpr DType f32 = DType::f32, bf16 = DType::bf16;

// Row ops on o (input `at`), a gate and a gain. One phase: gated rms norm. Four: a layer norm divided by the mean of its absolute
// values and multiplied with its mean square. The second output, where there is one, is o. The last function is the
// convolution's.
template <int at, int size, int outputs> struct Inputs {
  static constexpr int kGate = at == 0 ? 1 : 0, kGain = at == 2 ? 1 : 2;
  static __device__ __forceinline__ void put(const float *in, float normed, float *out) {
    out[0] = normed * in[kGain] * quotient(1.0f, 1 + expf(-in[kGate]));
    if (outputs > 1)
      out[1] = in[at];
  }
  static __device__ __forceinline__ void silu(const float *in, float *out) { out[0] = quotient(in[0], 1 + expf(-in[0])); }
};
template <int at, int size, int outputs> struct Rms : Inputs<at, size, outputs> {
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = in[at] * in[at]; }
  static __device__ __forceinline__ void phase1(const float *in, float *out) {
    Rms::put(in, in[at] * inverse_root(quotient(in[3], size) + kEpsilon), out);
  }
  static __device__ __forceinline__ void phase2(const float *in, float *out) { Rms::silu(in, out); }
};
template <int at, int size, int outputs> struct Four : Inputs<at, size, outputs> {
  static __device__ __forceinline__ float centred(const float *in) { return in[at] - in[3] / size; }
  static __device__ __forceinline__ float normed(const float *in) {
    return centred(in) * inverse_root(quotient(in[4], size) + kEpsilon);
  }
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = in[at]; }
  static __device__ __forceinline__ void phase1(const float *in, float *out) { out[0] = centred(in) * centred(in); }
  static __device__ __forceinline__ void phase2(const float *in, float *out) { out[0] = fabsf(normed(in)); }
  static __device__ __forceinline__ void phase3(const float *in, float *out) { out[0] = normed(in) * normed(in); }
  static __device__ __forceinline__ void phase4(const float *in, float *out) {
    Four::put(in, quotient(normed(in), in[5] / size) * (in[6] / size), out);
  }
  static __device__ __forceinline__ void phase5(const float *in, float *out) { Four::silu(in, out); }
};
template <bool four, int at, int size, int outputs> struct RegionOf : Rms<at, size, outputs> {};
template <int at, int size, int outputs> struct RegionOf<true, at, size, outputs> : Four<at, size, outputs> {};

// act: x, window, gate and output; mid: what the convolution and the recurrence give. silu: the convolution has a region.
template <int heads, int dim, int taps = 4, DType act = bf16, DType mid = bf16, int at_ = 0, int pad = 0, bool four = false,
          bool silu = true, DType past = act, DType weight = f32>
struct Shaped {
  static constexpr int H = heads, D = dim, kTaps = taps, kPast = taps - 1, at = at_, kOutputs = four ? 2 : 1;
  static constexpr int kGate = at == 0 ? 1 : 0, kGain = at == 2 ? 1 : 2;
  using Region = RegionOf<four, at, dim, kOutputs>;
  static constexpr Config make() {
    constexpr int W = heads * dim;
    Config c;
    c.conv = {.rows = 256,
              .channels = 3 * W,
              .taps = taps,
              .ld_x = 3 * W + pad,
              .ld_out = 3 * W,
              .epilogue = silu,
              .x_type = act,
              .w_type = weight,
              .window_type = past,
              .out_type = mid};
    c.kda = {.rows = 256,
             .heads = heads,
             .head_dim = dim,
             .ld_qkv = 3 * W,
             .ld_g = W + pad,
             .ld_beta = heads + pad,
             .ld_out = W,
             .chunk = 1,
             .qkv_type = mid,
             .out_type = mid};
    c.row.rows = 256, c.row.cols = W, c.row.groups = heads, c.row.inputs = 3, c.row.outputs = kOutputs;
    c.row.type[at] = (int)mid, c.row.ld[at] = W;
    c.row.type[kGate] = (int)act, c.row.ld[kGate] = W + pad;
    c.row.kind[kGain] = (int)OperandKind::column, c.row.type[kGain] = (int)f32, c.row.length[kGain] = dim;
    c.row.out_type[0] = (int)act, c.row.out_ld[0] = W + pad, c.row.out_type[1] = (int)f32, c.row.out_ld[1] = W + 2 * pad;
    c.row.phases = four ? 4 : 1;
    for (int i = 0; i < c.row.phases; ++i)
      c.row.sums[i] = 1;
    c.rows = 256, c.at = at;
    return c;
  }
  static constexpr Config config = make();
};
template <class S, int n> struct Blocks { // few blocks: many turns each
  static constexpr Tile few() {
    Tile t = choose(S::config);
    t.blocks = n;
    return t;
  }
  static constexpr Tile tile = few();
};

template <class S> struct Data {
  static constexpr Config c = S::config;
  static constexpr int H = S::H, D = S::D, W = H * D, kPast = S::kPast;
  Batches batch;
  int shift; // of the taps: not at a multiple of 16 bytes
  Tensor x, w, window, g, beta, state, gate, gain, out, second;

  Data(const std::vector<Batches::Run> &runs, Decay decay, int shift)
      : batch(runs), shift(shift), x(c.conv.x_type, batch.rows(), 3 * W, c.conv.ld_x),
        w(c.conv.w_type, 1, 3 * W * S::kTaps + shift), window(c.conv.window_type, kSlots * kPast, 3 * W),
        g(f32, batch.rows(), W, c.kda.ld_g), beta(f32, batch.rows(), H, c.kda.ld_beta), state(f32, kSlots * H * D, D),
        gate((DType)c.row.type[S::kGate], batch.rows(), W, c.row.ld[S::kGate]), gain(f32, 1, D),
        out((DType)c.row.out_type[0], batch.rows(), W, c.row.out_ld[0]), second(f32, batch.rows(), W, c.row.out_ld[1]) {
    x.fill_normal(1, batch.live()), w.fill_normal(0.7f), window.fill_normal(), gate.fill_normal(1, batch.live());
    g.fill([&] { return draw_decay(decay); }, batch.live());
    beta.fill([] { return uniform(0, 1); }, batch.live());
    state.fill_normal(), gain.fill([] { return uniform(0.5f, 2); });
  }
  Args args() {
    Args a{x.device(),           w.device<char>() + shift * k31::kernels::bytes_of_type(c.conv.w_type),
           window.device(),      g.device<float>(),
           beta.device<float>(), state.device<float>(),
           batch.view(),         {}};
    void *rest[2];
    rest[S::kGate - (S::kGate > c.at)] = gate.device(), rest[S::kGain - (S::kGain > c.at)] = gain.device();
    a.tail[0] = rest[0], a.tail[1] = rest[1], a.tail[2] = out.device(), a.tail[3] = second.device();
    return a;
  }
};

double rounded_to(DType type, double v) { return type == bf16 ? round_bf16((float)v) : v; }

// What must come out.
template <class S> struct Want {
  static constexpr Config c = S::config;
  static constexpr int H = S::H, D = S::D, W = H * D, kPast = S::kPast;
  std::vector<std::vector<double>> out, read, states, windows;

  explicit Want(const Data<S> &data)
      : out(data.batch.live(), std::vector<double>(W)), read(out), states(rows_of(data.state)), windows(rows_of(data.window)) {
    const auto before = states, past = windows;
    for (int s = 0; s < data.batch.live_segments(); ++s) {
      const auto &segment = data.batch.segments[s];
      auto input = [&](int offset, int channel) -> double {
        if (offset >= 0)
          return data.x.at(segment.row_begin + offset, channel);
        return segment.slot_in < 0 ? 0 : past[segment.slot_in * kPast + kPast + offset][channel];
      };
      auto convolved = [&](int offset, int channel) {
        double y = 0;
        for (int j = 0; j <= kPast; ++j)
          y += data.w.at(0, data.shift + channel * S::kTaps + j) * input(offset - kPast + j, channel);
        return rounded_to(c.conv.out_type, c.conv.epilogue ? y / (1 + std::exp(-y)) : y);
      };
      for (int j = 0; j < kPast; ++j)
        for (int i = 0; i < 3 * W; ++i)
          windows[segment.slot_out * kPast + j][i] = rounded_to(c.conv.window_type, input(segment.length - kPast + j, i));
      for (int h = 0; h < H; ++h) {
        std::vector<std::vector<double>> m(D, std::vector<double>(D));
        for (int d = 0; d < D && segment.slot_in >= 0; ++d)
          m[d] = before[(segment.slot_in * H + h) * D + d];
        for (int i = 0; i < segment.length; ++i)
          token(data, segment.row_begin + i, h, m, [&](int part, int d) { return convolved(i, part * W + h * D + d); });
        for (int d = 0; d < D; ++d)
          states[(segment.slot_out * H + h) * D + d] = m[d];
      }
    }
  }
  static std::vector<std::vector<double>> rows_of(const Tensor &t) {
    std::vector<std::vector<double>> rows(t.rows(), std::vector<double>(t.cols()));
    for (int64_t r = 0; r < t.rows(); ++r)
      for (int64_t i = 0; i < t.cols(); ++i)
        rows[r][i] = t.at(r, i);
    return rows;
  }
  template <class F> void token(const Data<S> &data, int r, int h, std::vector<std::vector<double>> &m, F convolved) {
    std::vector<double> q(D), k(D), v(D), o(D);
    double qq = 1e-6, kk = 1e-6;
    for (int d = 0; d < D; ++d) {
      q[d] = convolved(0, d), k[d] = convolved(1, d), v[d] = convolved(2, d);
      qq += q[d] * q[d], kk += k[d] * k[d];
    }
    for (int d = 0; d < D; ++d) {
      q[d] /= std::sqrt(qq) * std::sqrt((double)D), k[d] /= std::sqrt(kk);
      const double a = std::exp(data.g.at(r, h * D + d));
      for (double &value : m[d])
        value *= a;
    }
    for (int d = 0; d < D; ++d)
      for (int e = 0; e < D; ++e)
        o[e] += k[d] * m[d][e]; // what k sees
    for (int e = 0; e < D; ++e)
      v[e] = data.beta.at(r, h) * (v[e] - o[e]), o[e] = 0;
    for (int d = 0; d < D; ++d)
      for (int e = 0; e < D; ++e)
        m[d][e] += k[d] * v[e], o[e] += q[d] * m[d][e];
    double sum = 0, squares = 0, absolute = 0, mean_square = 0;
    for (double &one : o)
      one = rounded_to(c.kda.out_type, one), sum += one;
    constexpr bool four = c.row.phases > 1;
    const double mean = four ? sum / D : 0;
    for (double one : o)
      squares += (one - mean) * (one - mean);
    auto normed = [&](int e) { return (o[e] - mean) / std::sqrt(squares / D + kEpsilon); };
    for (int e = 0; e < D; ++e)
      absolute += std::abs(normed(e)) / D, mean_square += normed(e) * normed(e) / D;
    for (int e = 0; e < D; ++e) {
      const double y = four ? normed(e) / absolute * mean_square : normed(e);
      out[r][h * D + e] = y * data.gain.at(0, e) / (1 + std::exp(-data.gate.at(r, h * D + e))), read[r][h * D + e] = o[e];
    }
  }
};

// A prompt's tail, decode from a slot and from nothing, forks of one slot, which stays, longer continuations.
const std::vector<Batches::Run> kRuns = {{0, 5, -1, 4}, {7, 1, 1, 1}, {0, 1, -1, 7}, {12, 3, 3, 6}, {12, 1, 3, 0}, {30, 2, 8, 8}};
const std::vector<Batches::Run> kDecode = {{9, 1, 2, 2}, {7, 1, 1, 1}, {0, 1, -1, 7}, {12, 1, 3, 6}, {12, 1, 3, 0}, {3, 1, 8, 8}};

template <class S, class T = Chosen<S>>
void test(double tolerance, const std::vector<Batches::Run> &runs = kRuns, Decay decay = Decay::bounded, int shift = 0) {
  Data<S> data(runs, decay, shift);
  const Want<S> want(data);
  start<S, T, typename S::Region>(data.args());
  const int64_t live = data.batch.live();
  expect_close(data.out, live, [&](int64_t r, int64_t i) { return want.out[r][i]; }, tolerance);
  if (S::kOutputs > 1)
    expect_close(data.second, live, [&](int64_t r, int64_t i) { return want.read[r][i]; }, tolerance, "o");
  expect_close(data.state, data.state.rows(), [&](int64_t r, int64_t i) { return want.states[r][i]; }, tolerance, "state");
  expect_close(data.window, data.window.rows(), [&](int64_t r, int64_t i) { return want.windows[r][i]; }, 0, "window");
}

// ---- the three kernels one behind the other
template <class S> struct Silu {
  static __device__ __forceinline__ void phase0(const float *in, float *out) { S::Region::silu(in, out); }
};
template <class S>
__global__ void __launch_bounds__(attn::short_conv::Tile{}.threads())
    conv_entry(const __grid_constant__ attn::short_conv::Args args) {
  attn::short_conv::run<S::config.conv, attn::short_conv::choose(S::config.conv), Silu<S>>(args);
}
template <class S> __global__ void __launch_bounds__(128, 1) kda_entry(const __grid_constant__ attn::kda::Args args) {
  attn::kda::run<S::config.kda, attn::kda::choose(S::config.kda), k31::kernels::NoRegion>(args);
}
template <class S>
__global__ void __launch_bounds__(attn::row::Tile{}.threads()) row_entry(const __grid_constant__ attn::row::Args args) {
  attn::row::run<S::config.row, attn::row::choose(S::config.row), typename S::Region>(args);
}
// qkv: [T, 3 W], o: [T, W] of the middle type.
template <class S> void start_three(const Args &args, char *qkv, void *o) {
  constexpr Config c = S::config;
  constexpr int bytes = k31::kernels::bytes_of_type(c.kda.qkv_type) * c.row.cols;
  constexpr auto conv = attn::short_conv::choose(c.conv);
  constexpr auto kda = attn::kda::choose(c.kda);
  constexpr auto row = attn::row::choose(c.row);
  static_assert(kda.threads() == 128);
  launch<attn::short_conv::Args>(conv_entry<S>, grid(c.conv, conv), conv.threads(), conv.smem(c.conv),
                                 {args.x, args.w, args.window, args.batch, qkv});
  launch<attn::kda::Args>(kda_entry<S>, grid(c.kda, kda), kda.threads(), kda.smem(c.kda),
                          {qkv, qkv + bytes, qkv + 2 * bytes, args.g, args.beta, args.state, args.batch, o});
  attn::row::Args of_row{args.batch.counts, {}};
  for (int i = 0; i < c.row.inputs; ++i)
    of_row.tail[i] = i == c.at ? o : args.input(c, i);
  for (int i = 0; i < c.row.outputs; ++i)
    of_row.tail[c.row.inputs + i] = args.output(c, i);
  launch<attn::row::Args>(row_entry<S>, grid(c.row, row), row.threads(), row.smem(c.row), of_row);
}
// The same sums in another order: rounded values differ in their last place, where one is at the edge.
template <class S> void like_three(double tolerance) {
  random_engine().seed(1);
  Data<S> one(kRuns, Decay::bounded, 0);
  random_engine().seed(1);
  Data<S> three(kRuns, Decay::bounded, 0);
  constexpr Config c = S::config;
  Tensor qkv(c.kda.qkv_type, three.batch.rows(), 3 * Data<S>::W), o(c.kda.out_type, three.batch.rows(), Data<S>::W);
  start<S, Chosen<S>, typename S::Region>(one.args());
  start_three<S>(three.args(), qkv.device<char>(), o.device());
  three.out.fetch(), three.state.fetch(), three.window.fetch();
  expect_close(one.out, one.batch.live(), [&](int64_t r, int64_t i) { return three.out.at(r, i); }, tolerance);
  expect_close(one.state, one.state.rows(), [&](int64_t r, int64_t i) { return three.state.at(r, i); }, 1e-5, "state");
  expect_close(one.window, one.window.rows(), [&](int64_t r, int64_t i) { return three.window.at(r, i); }, 0, "window");
}

// All in fp32: the tolerance is tight.
template <int heads, int dim, int taps = 4, int at = 0, int pad = 0, bool four = false, bool silu = true>
using Exact = Shaped<heads, dim, taps, f32, f32, at, pad, four, silu>;
} // namespace

K31_CUDA_TEST("attn.kda_decode.heads") {
  test<Exact<1, 128>>(5e-5), test<Exact<3, 128>>(5e-5), test<Exact<12, 128>>(5e-5);
  test<Exact<24, 128>>(5e-5, kDecode), test<Exact<48, 128>>(5e-5, kDecode), test<Exact<96, 128>>(5e-5, kDecode);
}
K31_CUDA_TEST("attn.kda_decode.dims") {
  test<Exact<3, 16>>(5e-5), test<Exact<3, 32>>(5e-5), test<Exact<2, 48>>(5e-5), test<Exact<5, 64>>(5e-5);
  test<Exact<2, 96>>(5e-5), test<Exact<1, 112>>(5e-5);
}
K31_CUDA_TEST("attn.kda_decode.taps") {
  test<Exact<2, 64, 1>>(5e-5), test<Exact<2, 64, 2>>(5e-5), test<Exact<2, 32, 3>>(5e-5), test<Exact<2, 128, 8>>(5e-5);
  test<Shaped<2, 64, 4, f32, f32, 0, 0, false, true, f32, bf16>>(5e-5); // bf16 weights
}
K31_CUDA_TEST("attn.kda_decode.types") { // one value in a bf16 tensor rounds otherwise: its place after the norm
  test<Shaped<2, 128>>(2e-2), test<Shaped<3, 48, 2>>(2e-2), test<Shaped<2, 64, 4, bf16, f32>>(5e-5);
  test<Shaped<2, 64, 4, f32, f32, 0, 0, false, true, bf16>>(5e-5),
      test<Shaped<2, 64, 4, bf16, f32, 0, 0, false, true, f32>>(5e-5);
}
K31_CUDA_TEST("attn.kda_decode.regions") { // where the recurrence's result comes in, phases, no activation
  test<Exact<2, 128, 4, 1>>(5e-5), test<Exact<2, 64, 4, 2>>(5e-5);
  test<Exact<2, 128, 4, 0, 0, true>>(5e-5), test<Exact<3, 48, 4, 1, 3, true>>(5e-5);
  test<Exact<2, 64, 4, 0, 0, false, false>>(5e-5);
}
K31_CUDA_TEST("attn.kda_decode.views") { // rows and taps at any element
  test<Exact<3, 64, 4, 0, 5>>(5e-5), test<Shaped<2, 128, 4, bf16, f32, 1, 3>>(5e-5, kRuns, Decay::bounded, 1);
  test<Exact<2, 48, 8, 2, 1>>(5e-5, kRuns, Decay::bounded, 3);
}
K31_CUDA_TEST("attn.kda_decode.decays") {
  for (Decay decay : {Decay::weak, Decay::strong, Decay::mixed})
    test<Exact<3, 128>>(5e-5, kRuns, decay), test<Exact<3, 16>>(5e-5, kRuns, decay);
}
K31_CUDA_TEST("attn.kda_decode.turns") { // one block has all units, three blocks some
  test<Exact<3, 128>, Blocks<Exact<3, 128>, 1>>(5e-5), test<Exact<3, 128>, Blocks<Exact<3, 128>, 3>>(5e-5, kDecode);
  test<Exact<5, 64>, Blocks<Exact<5, 64>, 3>>(5e-5), test<Exact<2, 48>, Blocks<Exact<2, 48>, 1>>(5e-5);
}
K31_CUDA_TEST("attn.kda_decode.few") { // one row; nothing
  test<Exact<3, 128>>(5e-5, {{0, 1, -1, 0}}), test<Exact<3, 128>>(5e-5, {{5, 1, 2, 2}}), test<Exact<3, 128>>(5e-5, {});
}
K31_CUDA_TEST("attn.kda_decode.like_three") {
  like_three<Shaped<12, 128>>(2e-2), like_three<Shaped<3, 48>>(2e-2), like_three<Exact<5, 64>>(5e-5);
}

namespace {
template <class S> void time_decode(int sequences) {
  constexpr Config c = S::config;
  constexpr int64_t W = S::H * S::D;
  std::vector<Batches::Run> runs;
  for (int i = 0; i < sequences; ++i)
    runs.push_back({100, 1, i, i});
  Batches batch(runs, 0);
  Tensor x(bf16, sequences, 3 * W), w(f32, 1, 3 * W * S::kTaps), window(bf16, sequences * S::kPast, 3 * W), g(f32, sequences, W),
      beta(f32, sequences, S::H), state(f32, sequences * W, S::D), gate(bf16, sequences, W), gain(f32, 1, S::D),
      out(bf16, sequences, W), qkv(bf16, sequences, 3 * W), o(bf16, sequences, W);
  x.fill_fast(), w.fill_fast(0.7f), window.fill_fast(), state.fill_fast(0.1f), gate.fill_fast(), gain.fill_fast();
  g.fill([i = 0]() mutable { return -0.01f * (float)(1 + i++ % 400); });
  beta.fill([i = 0]() mutable { return 0.1f + 0.01f * (float)(i++ % 80); });
  const Args args{x.device(),           w.device(),
                  window.device(),      g.device<float>(),
                  beta.device<float>(), state.device<float>(),
                  batch.view(),         {gate.device(), gain.device(), out.device()}};
  const double values = (double)sequences * W;
  const double bytes = values * (S::D * 8 + 6 + 2 * S::kPast * 6 + 4 + 2 + 2) + 3.0 * W * S::kTaps * 4;
  const std::string what = std::to_string(S::H) + " heads, " + std::to_string(sequences) + " sequences";
  report("kda_decode " + what, time_us([&](int) { start<S, Chosen<S>, typename S::Region>(args); }), bytes);
  report("three kernels " + what, time_us([&](int) { start_three<S>(args, qkv.device<char>(), o.device()); }),
         bytes + values * 2 * (6 + 2)); // qkv and o are written and read
}
} // namespace

K31_CUDA_TEST("attn.kda_decode.time") {
  if (!timing())
    return;
  for (int sequences : {1, 8, 32, 64, 128, 256})
    time_decode<Shaped<96, 128>>(sequences);
  time_decode<Shaped<12, 128>>(64);
}
