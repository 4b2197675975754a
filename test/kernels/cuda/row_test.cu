// nn.row and nn.map: norms over rows and heads, two dependent reductions, every kind of operand, views that are not aligned.
#include "codegen/kernels/nn/row.cuh"
#include "test/kernels/cuda/runner.h"

K31_CUDA_KERNEL_BY_TYPE(row)

namespace {

using namespace k31::test;
using namespace k31::kernels::row;
using k31::kernels::inverse_root, k31::kernels::quotient;

constexpr double kEpsilon = 1e-5;
template <class F> double root_of_squares(int count, const F &value) { // of their mean, as norms divide by it
  double squares = 0;
  for (int i = 0; i < count; ++i)
    squares += value(i) * value(i);
  return std::sqrt(squares / count + kEpsilon);
}

// x, gain
template <int size> struct RmsNorm {
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = in[0] * in[0]; }
  static __device__ __forceinline__ void phase1(const float *in, float *out) {
    out[0] = in[0] * in[1] * inverse_root(quotient(in[2], size) + 1e-5f);
  }
};

template <class S, class T = Chosen<S>> void norm(int live, int shift = 0) {
  constexpr Config c = S::config;
  constexpr int size = c.cols / c.groups;
  Tensor x((DType)c.type[0], c.rows + 1, c.ld[0]), gain((DType)c.type[1], 1, c.length[1]), count(DType::i32, 1, 1),
      out((DType)c.out_type[0], c.rows, c.cols, c.out_ld[0]);
  x.fill_normal(), gain.fill_normal(), count.set(0, 0, live);
  auto xv = [&](int64_t r, int64_t col) {
    int64_t at = shift + r * c.ld[0] + col;
    return x.at(at / x.ld(), at % x.ld());
  };
  Args args{count.device<int32_t>(),
            {x.device<char>() + shift * k31::kernels::bytes_of_type((DType)c.type[0]), gain.device(), out.device()}};
  start<S, T, RmsNorm<size>>(args);
  std::vector<double> roots; // of each row's groups
  for (int r = 0; r < live; ++r)
    for (int first = 0; first < c.cols; first += size)
      roots.push_back(root_of_squares(size, [&](int i) { return xv(r, first + i); }));
  expect_close(
      out, live,
      [&](int64_t r, int64_t col) { return xv(r, col) * gain.at(0, col % c.length[1]) / roots[r * c.groups + col / size]; },
      1e-5);
}

// The Config of a norm: x, and a gain of `length` values.
struct NormOf {
  int rows, cols, groups = 1;
  DType x = DType::bf16, gain = DType::f32, out = DType::bf16;
  int ld = cols, length = cols / groups, out_ld = cols;
  constexpr operator Config() const {
    return {.rows = rows,
            .cols = cols,
            .groups = groups,
            .inputs = 2,
            .kind = {0, 2},
            .type = {(int)x, (int)gain},
            .ld = {ld},
            .length = {0, length},
            .outputs = 1,
            .out_type = {(int)out},
            .out_ld = {out_ld},
            .phases = 1,
            .sums = {1}};
  }
};
struct rows_few {
  static constexpr Config config = NormOf{.rows = 9, .cols = 7168, .ld = 7184};
};
struct rows_many {
  static constexpr Config config = NormOf{.rows = 300, .cols = 7168, .gain = DType::bf16, .out = DType::f32};
};
struct per_head {
  static constexpr Config config = NormOf{.rows = 33, .cols = 24 * 128, .groups = 24, .x = DType::f32};
};
struct odd {
  static constexpr Config config =
      NormOf{.rows = 33, .cols = 3 * 37, .groups = 3, .gain = DType::bf16, .ld = 113, .length = 111, .out_ld = 119};
};
struct odd_long {
  static constexpr Config config = NormOf{.rows = 5, .cols = 1999, .x = DType::f32, .out = DType::f32};
};
struct reload {
  static constexpr Tile tile{.block = 128, .team = 128, .vector = 8, .keep = 0};
};
static_assert(Chosen<rows_few>::tile.vector == 8 && Chosen<rows_few>::tile.team == 896 && Chosen<per_head>::tile.team == 32 &&
              Chosen<odd>::tile.vector == 1);

} // namespace

K31_CUDA_TEST("nn.row.norm") {
  norm<rows_few>(7), norm<rows_many>(290), norm<per_head>(31), norm<odd>(30), norm<odd_long>(5), norm<rows_few>(0);
}
K31_CUDA_TEST("nn.row.norm_reload") { norm<rows_few, reload>(9); }
K31_CUDA_TEST("nn.row.norm_unaligned") { norm<rows_few>(9, 1), norm<rows_many>(20, 5); }

namespace {
// A residual mix: softmax-free weights from one score a block, then an rms norm of the mix. Inputs: a, b, query, gain, row
// scalar. phase 0: scores of a and b; phase 1: square of the mix; outputs: the mix and its norm.
struct Mix {
  static __device__ __forceinline__ float mix(const float *in) {
    float wa = expf(in[5] / 64), wb = expf(in[6] / 64);
    return (wa * in[0] + wb * in[1]) / (wa + wb) * in[4];
  }
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = in[0] * in[2], out[1] = in[1] * in[2]; }
  static __device__ __forceinline__ void phase1(const float *in, float *out) {
    float m = mix(in);
    out[0] = m * m;
  }
  static __device__ __forceinline__ void phase2(const float *in, float *out) {
    float m = mix(in);
    out[0] = m, out[1] = m * in[3] / sqrtf(in[7] / 1536 + 1e-5f);
  }
};
struct mixed {
  static constexpr Config config{.rows = 21,
                                 .cols = 1536,
                                 .inputs = 5,
                                 .kind = {0, 0, 2, 3, 1},
                                 .type = {1, 0, 0, 1, 0},
                                 .ld = {1536, 1544, 0, 0, 1},
                                 .length = {0, 0, 1536, 12, 0},
                                 .outputs = 2,
                                 .out_type = {0, 1},
                                 .out_ld = {1536, 1536},
                                 .phases = 2,
                                 .sums = {2, 1}};
};
template <class S, class T = Chosen<S>> void residual_mix(int live) {
  constexpr Config c = S::config;
  Tensor a(DType::bf16, c.rows, c.cols), b(DType::f32, c.rows, c.cols, 1544), query(DType::f32, 1, c.cols),
      gain(DType::bf16, 1, 12), scalar(DType::f32, c.rows, 1), count(DType::i32, 1, 1), mix(DType::f32, c.rows, c.cols),
      normed(DType::bf16, c.rows, c.cols);
  a.fill_normal(), b.fill_normal(), query.fill_normal(), gain.fill_normal(), scalar.fill([] { return uniform(0.5f, 2); }),
      count.set(0, 0, live);
  start<S, T, Mix>({count.device<int32_t>(),
                    {a.device(), b.device(), query.device(), gain.device(), scalar.device(), mix.device(), normed.device()}});
  std::vector<std::vector<double>> mixes;
  std::vector<double> roots;
  for (int r = 0; r < live; ++r) {
    double sa = 0, sb = 0;
    for (int i = 0; i < c.cols; ++i)
      sa += a.at(r, i) * query.at(0, i), sb += b.at(r, i) * query.at(0, i);
    double wa = std::exp(sa / 64), wb = std::exp(sb / 64);
    std::vector<double> &m = mixes.emplace_back(c.cols);
    for (int i = 0; i < c.cols; ++i)
      m[i] = (wa * a.at(r, i) + wb * b.at(r, i)) / (wa + wb) * scalar.at(r, 0);
    roots.push_back(root_of_squares(c.cols, [&](int i) { return m[i]; }));
  }
  expect_close(mix, live, [&](int64_t r, int64_t col) { return mixes[r][col]; }, 1e-4, "mix");
  expect_close(
      normed, live, [&](int64_t r, int64_t col) { return mixes[r][col] * gain.at(0, col / 128) / roots[r]; }, 1e-4, "norm");
}

struct Add { // a map of two elements and a column
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = in[0] + in[1] * in[2]; }
};
struct map {
  static constexpr Config config{.rows = 19,
                                 .cols = 520,
                                 .inputs = 3,
                                 .kind = {0, 0, 2},
                                 .type = {1, 0, 1},
                                 .ld = {528, 520},
                                 .length = {0, 0, 104},
                                 .outputs = 1,
                                 .out_type = {1},
                                 .out_ld = {528}};
};
struct map_odd {
  static constexpr Config config{.rows = 19,
                                 .cols = 70,
                                 .inputs = 3,
                                 .kind = {0, 0, 2},
                                 .type = {1, 0, 1},
                                 .ld = {71, 72},
                                 .length = {0, 0, 7},
                                 .outputs = 1,
                                 .out_type = {1},
                                 .out_ld = {75}};
};
template <class S> void added(int live) {
  constexpr Config c = S::config;
  Tensor a(DType::bf16, c.rows, c.cols, c.ld[0]), b(DType::f32, c.rows, c.cols, c.ld[1]), column(DType::bf16, 1, c.length[2]),
      count(DType::i32, 1, 1), out(DType::bf16, c.rows, c.cols, c.out_ld[0]);
  a.fill_normal(), b.fill_normal(), column.fill_normal(), count.set(0, 0, live);
  start<S, Chosen<S>, Add>({count.device<int32_t>(), {a.device(), b.device(), column.device(), out.device()}});
  expect_close(
      out, live, [&](int64_t r, int64_t col) { return a.at(r, col) + b.at(r, col) * column.at(0, col % c.length[2]); }, 1e-6);
}
} // namespace

K31_CUDA_TEST("nn.row.mix") { residual_mix<mixed>(20), residual_mix<mixed, reload>(21); }
K31_CUDA_TEST("nn.map") { added<map>(17), added<map_odd>(18); }

namespace {
template <int rows> struct Timed {
  static constexpr Config config = NormOf{.rows = rows, .cols = 7168};
};
template <int rows> void time_norm() {
  using S = Timed<rows>;
  Tensor x(DType::bf16, rows, 7168), gain(DType::f32, 1, 7168), count(DType::i32, 1, 1), out(DType::bf16, rows, 7168);
  x.fill_fast(), gain.fill_fast(), count.set(0, 0, rows);
  Args args{count.device<int32_t>(), {x.device(), gain.device(), out.device()}};
  report("rms norm " + std::to_string(rows) + " x 7168", time_us([&](int) { start<S, Chosen<S>, RmsNorm<7168>>(args); }),
         4.0 * rows * 7168);
}

// The residual mix of nine sources with its norm: a score a source from its normed row, the softmax of the scores, the mix.
struct MixOfNine {
  static constexpr int kSources = 9; // then the query and the gain, sums of squares, of products, and of the mix's squares
  static __device__ __forceinline__ float mix(const float *in) {
    const float *squares = in + kSources + 2, *products = squares + kSources;
    float weights[kSources], total = 0, sum = 0;
    for (int i = 0; i < kSources; ++i)
      total += weights[i] = expf(products[i] * inverse_root(quotient(squares[i], 7168) + 1e-5f));
    for (int i = 0; i < kSources; ++i)
      sum += weights[i] * in[i];
    return quotient(sum, total);
  }
  static __device__ __forceinline__ void phase0(const float *in, float *out) {
    for (int i = 0; i < kSources; ++i)
      out[i] = in[i] * in[i], out[kSources + i] = in[i] * in[kSources];
  }
  static __device__ __forceinline__ void phase1(const float *in, float *out) {
    const float m = mix(in);
    out[0] = m * m;
  }
  static __device__ __forceinline__ void phase2(const float *in, float *out) {
    out[0] = mix(in) * in[kSources + 1] * inverse_root(quotient(in[3 * kSources + 2], 7168) + 1e-5f);
  }
};
template <int rows> struct TimedMix {
  static constexpr Config make() {
    Config c{
        .rows = rows, .cols = 7168, .inputs = 11, .outputs = 1, .out_type = {1}, .out_ld = {7168}, .phases = 2, .sums = {18, 1}};
    for (int i = 0; i < 11; ++i)
      c.kind[i] = i < 9 ? 0 : 2, c.type[i] = i < 9 ? 1 : 0, c.ld[i] = i < 9 ? 7168 : 0, c.length[i] = i < 9 ? 0 : 7168;
    return c;
  }
  static constexpr Config config = make();
};
template <int threads, int kept> struct threads_of_row {
  static constexpr Tile tile{.block = threads, .team = threads, .vector = 8, .keep = kept};
};
template <int rows> struct MixTensors {
  Tensor sources{DType::bf16, 9 * rows, 7168}, query{DType::f32, 1, 7168}, gain{DType::f32, 1, 7168}, count{DType::i32, 1, 1},
      out{DType::bf16, rows, 7168};
  Args args(int live) {
    count.set(0, 0, live);
    Args args{count.device<int32_t>(), {}};
    for (int i = 0; i < 9; ++i)
      args.tail[i] = sources.device<uint16_t>() + (int64_t)i * rows * 7168;
    args.tail[9] = query.device(), args.tail[10] = gain.device(), args.tail[11] = out.device();
    return args;
  }
};
template <int rows, class T = Chosen<TimedMix<rows>>> void time_mix() {
  MixTensors<rows> mix;
  mix.sources.fill_fast(), mix.query.fill_fast(0.01f), mix.gain.fill_fast();
  const Args args = mix.args(rows);
  report("mix of 9 and rms norm " + std::to_string(rows) + " x 7168, " + std::to_string(T::tile.split) + " x " +
             std::to_string(T::tile.block) + " threads",
         time_us([&](int) { start<TimedMix<rows>, T, MixOfNine>(args); }), 20.0 * rows * 7168);
}
static_assert(Chosen<TimedMix<8>>::tile.split == 2 && Chosen<TimedMix<66>>::tile.split == 2 &&
              Chosen<TimedMix<67>>::tile.split == 1);
template <class T = Chosen<TimedMix<8>>> void mix_of_nine(int live) {
  constexpr int C = 7168;
  MixTensors<8> tensors;
  auto &[sources, query, gain, count, out] = tensors;
  sources.fill_normal(), query.fill_normal(0.02f), gain.fill_normal();
  start<TimedMix<8>, T, MixOfNine>(tensors.args(live));
  std::vector<std::vector<double>> mixes;
  std::vector<double> roots;
  for (int r = 0; r < live; ++r) {
    double weight[9], total = 0;
    for (int i = 0; i < 9; ++i) {
      double product = 0;
      for (int k = 0; k < C; ++k)
        product += sources.at(i * 8 + r, k) * query.at(0, k);
      total += weight[i] = std::exp(product / root_of_squares(C, [&](int k) { return sources.at(i * 8 + r, k); }));
    }
    std::vector<double> &mix = mixes.emplace_back(C);
    for (int k = 0; k < C; ++k)
      for (int i = 0; i < 9; ++i)
        mix[k] += weight[i] / total * sources.at(i * 8 + r, k);
    roots.push_back(root_of_squares(C, [&](int k) { return mix[k]; }));
  }
  expect_close(out, live, [&](int64_t r, int64_t col) { return mixes[r][col] * gain.at(0, col) / roots[r]; }, 6e-3);
}
} // namespace

K31_CUDA_TEST("nn.row.mix_of_nine") {
  mix_of_nine(7), mix_of_nine<threads_of_row<512, 96>>(5), mix_of_nine<threads_of_row<256, 96>>(8),
      mix_of_nine<threads_of_row<896, 0>>(3);
}
K31_CUDA_TEST("nn.row.time") {
  if (!timing())
    return;
  time_norm<1>(), time_norm<64>(), time_norm<4096>(), time_norm<16384>();
  time_mix<1>(), time_mix<64>(), time_mix<4096>();
  time_mix<64, threads_of_row<512, 96>>(), time_mix<64, threads_of_row<896, 0>>(), time_mix<4096, threads_of_row<512, 96>>();
}
