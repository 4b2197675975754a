// nn.linear: the four forms, pairs, epilogues with every kind of operand, views that are not aligned, dead rows.
#include "codegen/kernels/nn/linear.cuh"
#include "test/kernels/cuda/gated.h"
#include "test/kernels/cuda/runner.h"

K31_CUDA_KERNEL_MAPPED(linear)

namespace {

using namespace k31::test;
using namespace k31::kernels::linear;

// x [rows, k] and W [n, k]; the result is compared for `live` rows. `shift` elements before x and W make them unaligned.
template <class S, class T = Chosen<S>, class R = k31::kernels::NoRegion> void product(int live, int shift = 0) {
  constexpr Config c = S::config;
  Tensor x(c.x_type, c.rows, c.ld_x + shift), w(c.w_type, 1, (int64_t)c.n * c.k + shift), count(DType::i32, 1, 1);
  constexpr int cols = c.pair ? c.n / 2 : c.n;
  Tensor out((DType)c.out_type[0], c.rows, cols, c.out_ld[0]);
  x.fill_normal(), w.fill_normal(1 / std::sqrt((float)c.k)), count.set(0, 0, live);
  // Rows of x are ld_x apart from element `shift` on; the tensor's own rows are longer by `shift`, so it is filled flat.
  auto xv = [&](int64_t r, int64_t k) {
    int64_t at = shift + r * c.ld_x + k;
    return x.at(at / x.ld(), at % x.ld());
  };
  auto wv = [&](int64_t n, int64_t k) { return w.at(0, shift + n * c.k + k); };
  Args args{};
  args.x = x.device<char>() + shift * k31::kernels::bytes_of_type(c.x_type);
  args.w = w.device<char>() + shift * k31::kernels::bytes_of_type(c.w_type);
  args.live = count.device<int32_t>(), args.tail[0] = out.device();
  start<S, T, R>(args);
  auto dot = [&](int64_t r, int64_t n) {
    double sum = 0;
    for (int k = 0; k < c.k; ++k)
      sum += xv(r, k) * wv(n, k);
    return sum;
  };
  expect_close(out, live, [&](int64_t r, int64_t col) { return gated_dot<c.pair != 0>(r, col, dot); }, 2e-4);
}

struct thin {
  static constexpr Config config{.rows = 8, .n = 80, .k = 520, .ld_x = 528, .out_type = {1}, .out_ld = {88}};
};
struct thin16 {
  static constexpr Config config{.rows = 16, .n = 80, .k = 1024, .ld_x = 1024, .out_type = {0}, .out_ld = {80}};
};
struct pairs {
  static constexpr Config config{
      .rows = 8, .n = 192, .k = 256, .pair = 1, .epilogue = 1, .ld_x = 256, .out_type = {1}, .out_ld = {96}};
};
struct pairs64 {
  static constexpr Config config{
      .rows = 64, .n = 192, .k = 256, .pair = 1, .epilogue = 1, .ld_x = 256, .out_type = {1}, .out_ld = {96}};
};
struct wide64 {
  static constexpr Config config{.rows = 64, .n = 200, .k = 328, .ld_x = 336, .out_type = {0}, .out_ld = {200}};
};
struct wide200 {
  static constexpr Config config{.rows = 200, .n = 264, .k = 200, .ld_x = 200, .out_type = {1}, .out_ld = {264}};
};
struct pairs200 {
  static constexpr Config config{
      .rows = 200, .n = 320, .k = 136, .pair = 1, .epilogue = 1, .ld_x = 136, .out_type = {0}, .out_ld = {160}};
};
struct odd {
  static constexpr Config config{.rows = 20, .n = 37, .k = 45, .ld_x = 51, .out_type = {1}, .out_ld = {37}};
};
struct fp32 {
  static constexpr Config config{.rows = 20, .n = 48, .k = 72, .x_type = DType::f32, .ld_x = 72, .out_type = {0}, .out_ld = {48}};
};
struct fp32_pairs {
  static constexpr Config config{.rows = 20,
                                 .n = 96,
                                 .k = 72,
                                 .pair = 1,
                                 .epilogue = 1,
                                 .x_type = DType::f32,
                                 .w_type = DType::f32,
                                 .ld_x = 72,
                                 .out_type = {0},
                                 .out_ld = {48}};
};

struct few {
  static constexpr Config config{.rows = 48, .n = 4104, .k = 328, .ld_x = 336, .out_type = {1}, .out_ld = {4104}};
};
// Tiles of the mapped form.
template <int32_t rows, int32_t columns, int32_t box = 0> struct mapped {
  static constexpr Tile make() {
    Tile t;
    t.form = k31::kernels::kMapped, t.bm = rows, t.block = rows * 2 + 128, t.bn = columns, t.box_x = box ? box : rows;
    t.stages = k31::kernels::least((k31::kernels::kMaxSharedMemory - 1024) / (t.stage_bytes() + 16), 16);
    return t;
  }
  static constexpr Tile tile = make();
};

// Clusters that share K: widths that are no multiple of 8, odd ones, pairs, many rows, K of fewer stages for some blocks.
template <int32_t rows, int32_t n, int32_t k> struct narrow {
  static constexpr Config config{.rows = rows, .n = n, .k = k, .ld_x = k, .out_type = {1}, .out_ld = {n}};
};
template <int32_t rows, int32_t columns, int32_t blocks> struct cluster {
  static constexpr Tile make() {
    Tile t = mapped<rows, columns>::tile;
    t.split = blocks;
    return t;
  }
  static constexpr Tile tile = make();
};
static_assert(Chosen<narrow<64, 12, 1096>>::tile.split > 1 && Chosen<narrow<64, 1536, 7168>>::tile.split > 1);

static_assert(Chosen<few>::tile.form == k31::kernels::kMapped);
static_assert(Chosen<thin>::tile.form == k31::kernels::kThin && Chosen<wide64>::tile.form == k31::kernels::kMapped &&
              Chosen<odd>::tile.form == k31::kernels::kPlain && Chosen<fp32>::tile.form == k31::kernels::kPlain);

} // namespace

namespace {

// Three outputs share out the columns of the sums: 48, 16 and the rest of `n`, bf16, f32 and bf16.
template <int32_t rows, int32_t n, int32_t k, DType w_type = DType::bf16> struct parts {
  static constexpr Config config{.rows = rows,
                                 .n = n,
                                 .k = k,
                                 .w_type = w_type,
                                 .ld_x = k + 8,
                                 .outputs = 3,
                                 .out_type = {1, 0, 1},
                                 .out_ld = {48, 16, n - 64}};
};
template <class S, class T = Chosen<S>> void product_of_parts(int live) {
  constexpr Config c = S::config;
  Tensor x(c.x_type, c.rows, c.k, c.ld_x), w(c.w_type, c.n, c.k), count(DType::i32, 1, 1);
  x.fill_normal(), w.fill_normal(1 / std::sqrt((float)c.k)), count.set(0, 0, live);
  Tensor out[3] = {{(DType)c.out_type[0], c.rows, c.out_ld[0]},
                   {(DType)c.out_type[1], c.rows, c.out_ld[1]},
                   {(DType)c.out_type[2], c.rows, c.out_ld[2]}};
  Args args{};
  args.x = x.device(), args.w = w.device(), args.live = count.device<int32_t>();
  for (int i = 0; i < 3; ++i)
    args.tail[i] = out[i].device();
  start<S, T, k31::kernels::NoRegion>(args);
  for (int i = 0; i < 3; ++i)
    expect_close(
        out[i], live,
        [&](int64_t r, int64_t col) {
          double sum = 0;
          for (int k = 0; k < c.k; ++k)
            sum += x.at(r, k) * w.at(output_begin(c, i) + col, k);
          return sum;
        },
        2e-4);
}
static_assert(Chosen<parts<8, 200, 520>>::tile.form == k31::kernels::kThin);
static_assert(Chosen<parts<64, 85, 1096>>::tile.split > 1 && Chosen<parts<200, 264, 200>>::tile.form == k31::kernels::kMapped);

} // namespace

K31_CUDA_TEST("nn.linear.parts") {
  product_of_parts<parts<8, 200, 520>>(7), product_of_parts<parts<64, 85, 1096>>(50), product_of_parts<parts<64, 72, 7168>>(64);
  product_of_parts<parts<64, 6272, 328>>(63), product_of_parts<parts<200, 264, 200>>(190),
      product_of_parts<parts<64, 84, 328>>(0);
  product_of_parts<parts<200, 280, 328>, mapped<128, 96>>(131), product_of_parts<parts<64, 200, 328>, cluster<64, 48, 3>>(64);
  product_of_parts<parts<20, 101, 72, DType::f32>>(19);
}
K31_CUDA_TEST("nn.linear.thin") { product<thin>(1), product<thin>(5), product<thin>(8), product<thin16>(13); }
K31_CUDA_TEST("nn.linear.thin_pairs") { product<pairs, Chosen<pairs>, Gated>(7); }
K31_CUDA_TEST("nn.linear.more_rows") { product<wide64>(64), product<wide64>(37), product<wide200>(200), product<wide200>(129); }
K31_CUDA_TEST("nn.linear.more_pairs") {
  product<pairs64, Chosen<pairs64>, Gated>(50), product<pairs200, Chosen<pairs200>, Gated>(190);
}
namespace {
struct deep {
  static constexpr Config config{.rows = 300, .n = 520, .k = 1096, .ld_x = 1096, .out_type = {0}, .out_ld = {520}};
};
} // namespace
K31_CUDA_TEST("nn.linear.mapped") {
  product<few>(48), product<few>(33), product<few>(1);
  product<deep>(300), product<deep>(129), product<wide200>(200), product<pairs200, Chosen<pairs200>, Gated>(190);
}
K31_CUDA_TEST("nn.linear.mapped_tiles") {
  product<deep, mapped<128, 256>>(291), product<deep, mapped<128, 96>>(290), product<deep, mapped<64, 16>>(70);
  product<deep, mapped<64, 48>>(130), product<deep, mapped<64, 192>>(200), product<wide64, mapped<64, 96, 32>>(32);
  product<wide64, mapped<64, 128, 16>>(16), product<pairs200, mapped<128, 64>, Gated>(190),
      product<pairs64, mapped<64, 32>, Gated>(50);
}
K31_CUDA_TEST("nn.linear.cluster") {
  product<narrow<64, 12, 1096>>(64), product<narrow<64, 12, 1096>>(3), product<narrow<64, 12, 1096>>(0);
  product<narrow<64, 37, 2056>>(50), product<narrow<64, 3, 7168>>(17), product<narrow<64, 1536, 7168>>(64);
  product<narrow<100, 264, 1096>, cluster<128, 64, 3>>(100), product<narrow<200, 264, 1096>, cluster<128, 192, 7>>(129);
  product<deep, cluster<64, 256, 5>>(300), product<wide200, cluster<128, 96, 2>>(200), product<wide64, cluster<64, 128, 6>>(1);
  product<pairs200, cluster<128, 64, 2>, Gated>(190), product<pairs64, cluster<64, 96, 4>, Gated>(50);
}
K31_CUDA_TEST("nn.linear.plain") { product<odd>(19), product<fp32>(17), product<fp32_pairs, Chosen<fp32_pairs>, Gated>(18); }
K31_CUDA_TEST("nn.linear.unaligned") { product<thin>(6, 1), product<wide64>(40, 3), product<few>(40, 2), product<deep>(200, 5); }
K31_CUDA_TEST("nn.linear.no_rows") { product<thin>(0), product<wide200>(0), product<odd>(0), product<few>(0); }

namespace {
// Sum, element, row scalar, column, column group in; two outputs.
struct Mixed {
  static __device__ __forceinline__ void phase0(const float *in, float *out) {
    out[0] = in[0] + in[1] * in[2], out[1] = in[0] * in[3] - in[4];
  }
};
struct mixed {
  static constexpr Config config{.rows = 70,
                                 .n = 96,
                                 .k = 64,
                                 .epilogue = 1,
                                 .ld_x = 64,
                                 .extras = 4,
                                 .extra_kind = {0, 1, 2, 3},
                                 .extra_type = {1, 0, 1, 0},
                                 .extra_ld = {100, 1, 0, 0},
                                 .extra_cols = {0, 0, 48, 12},
                                 .outputs = 2,
                                 .out_type = {0, 1},
                                 .out_ld = {96, 104}};
};
template <class S> void mixed_epilogue(int live) {
  constexpr Config c = S::config;
  Tensor x(DType::bf16, c.rows, c.k), w(DType::bf16, c.n, c.k), count(DType::i32, 1, 1), element(DType::bf16, c.rows, c.n, 100),
      scalar(DType::f32, c.rows, 1), column(DType::bf16, 1, 48), group(DType::f32, 1, 12), a(DType::f32, c.rows, c.n),
      b(DType::bf16, c.rows, c.n, 104);
  x.fill_normal(), w.fill_normal(0.1f), count.set(0, 0, live), element.fill_normal(), scalar.fill_normal(), column.fill_normal(),
      group.fill_normal();
  Args args{x.device(),
            w.device(),
            count.device<int32_t>(),
            {element.device(), scalar.device(), column.device(), group.device(), a.device(), b.device()}};
  start<S, Chosen<S>, Mixed>(args);
  auto dot = [&](int64_t r, int64_t n) {
    double sum = 0;
    for (int k = 0; k < c.k; ++k)
      sum += x.at(r, k) * w.at(n, k);
    return sum;
  };
  expect_close(a, live, [&](int64_t r, int64_t n) { return dot(r, n) + element.at(r, n) * scalar.at(r, 0); }, 1e-4, "first");
  expect_close(
      b, live, [&](int64_t r, int64_t n) { return dot(r, n) * column.at(0, n % 48) - group.at(0, n / 8); }, 1e-4, "second");
}
constexpr Config with_rows(Config c, int rows) { return c.rows = rows, c; }
struct mixed_thin {
  static constexpr Config config = with_rows(mixed::config, 8);
};
} // namespace

K31_CUDA_TEST("nn.linear.epilogue") { mixed_epilogue<mixed>(67), mixed_epilogue<mixed_thin>(5); }

namespace {
template <int rows, int n, int k> struct Timed {
  static constexpr Config config{.rows = rows, .n = n, .k = k, .ld_x = k, .out_type = {1}, .out_ld = {n}};
};
template <int rows, int n, int k, class T = Chosen<Timed<rows, n, k>>> void time_linear() {
  using S = Timed<rows, n, k>;
  constexpr int copies = (int64_t)n * k * 2 > 100 << 20 ? 2 : 4; // more than the second-level cache together
  Tensor x(DType::bf16, rows, k), w(DType::bf16, (int64_t)n * copies, k), out(DType::bf16, rows, n), count(DType::i32, 1, 1);
  x.fill_fast(), w.fill_fast(0.02f), count.set(0, 0, rows);
  Args args{x.device(), w.device(), count.device<int32_t>(), {out.device()}};
  double us = time_us([&](int i) {
    args.w = w.device<uint16_t>() + (int64_t)(i % copies) * n * k;
    start<S, T>(args);
  });
  report(std::string(T::tile.form != k31::kernels::kMapped
                         ? "linear "
                         : "linear, mapped " + std::to_string(T::tile.bm) + "x" + std::to_string(T::tile.bn) +
                               (T::tile.split > 1 ? "/" + std::to_string(T::tile.split) : "") + ", ") +
             std::to_string(rows) + " x " + std::to_string(n) + " x " + std::to_string(k),
         us, 2.0 * n * k + 2.0 * rows * (n + k), 2.0 * rows * n * k);
}
} // namespace

K31_CUDA_TEST("nn.linear.time_few") {
  if (!timing())
    return;
  time_linear<1, 12288, 7168>(), time_linear<8, 12288, 7168>(), time_linear<16, 12288, 7168>(), time_linear<32, 12288, 7168>(),
      time_linear<64, 12288, 7168>(), time_linear<128, 12288, 7168>(), time_linear<256, 12288, 7168>();
  time_linear<1, 1536, 7168>(), time_linear<16, 1536, 7168>(), time_linear<64, 1536, 7168>(), time_linear<64, 6144, 7168>(),
      time_linear<64, 7168, 1536>();
  time_linear<16, 1536, 7168, mapped<64, 16, 16>>(), time_linear<64, 6144, 7168, mapped<64, 96>>();
  time_linear<64, 12, 7168>(), time_linear<64, 128, 7168>(), time_linear<64, 576, 7168>(), time_linear<64, 896, 7168>(),
      time_linear<64, 2304, 1536>(), time_linear<64, 3584, 7168>(), time_linear<64, 4608, 7168>(), time_linear<512, 1536, 7168>();
  time_linear<64, 1536, 7168, mapped<64, 16>>(), time_linear<64, 1536, 7168, cluster<64, 64, 4>>(),
      time_linear<64, 1536, 7168, cluster<64, 96, 4>>(), time_linear<64, 1536, 7168, cluster<64, 48, 4>>(),
      time_linear<64, 4608, 7168, mapped<64, 48>>(), time_linear<64, 4608, 7168, cluster<64, 192, 4>>(),
      time_linear<64, 4608, 7168, cluster<64, 96, 2>>(), time_linear<64, 3584, 7168, mapped<64, 32>>(),
      time_linear<64, 3584, 7168, cluster<64, 128, 4>>(), time_linear<64, 12288, 7168, cluster<64, 192, 2>>();
}
namespace {
// Products of the same rows, as one with an output for each, and one after the other.
template <int rows, int k, int... n> struct TimedParts {
  static constexpr Config make() {
    Config c{.rows = rows, .n = (n + ...), .k = k, .ld_x = k, .outputs = sizeof...(n), .out_ld = {n...}};
    for (int i = 0; i < c.outputs; ++i)
      c.out_type[i] = 1;
    return c;
  }
  static constexpr Config config = make();
};
template <int rows, int k, int... n> void time_parts() {
  using All = TimedParts<rows, k, n...>;
  constexpr int copies = 4, widths[] = {n...};
  constexpr int64_t all = All::config.n;
  Tensor x(DType::bf16, rows, k), w(DType::bf16, all * copies, k), out(DType::bf16, rows, all), count(DType::i32, 1, 1);
  x.fill_fast(), w.fill_fast(0.02f), count.set(0, 0, rows);
  Args args{x.device(), w.device(), count.device<int32_t>(), {}};
  std::string shape = std::to_string(rows) + " x (";
  for (int i = 0, begin = 0; i < All::config.outputs; begin += widths[i++]) {
    args.tail[i] = out.device<uint16_t>() + (int64_t)rows * begin;
    shape += (i ? " + " : "") + std::to_string(widths[i]);
  }
  shape += ") x " + std::to_string(k);
  const double bytes = 2.0 * all * k + 2.0 * rows * (all + k), flops = 2.0 * rows * all * k;
  report("linear, one " + shape, time_us([&](int i) {
           args.w = w.device<uint16_t>() + i % copies * all * k;
           start<All>(args);
         }),
         bytes, flops);
  Args own = args;
  report("linear, apart " + shape, time_us([&](int i) {
           const uint16_t *at = w.device<uint16_t>() + i % copies * all * k;
           int part = 0;
           ((own.w = at, own.tail[0] = args.tail[part++], start<Timed<rows, n, k>>(own), at += (int64_t)n * k), ...);
         }),
         bytes, flops);
}
} // namespace

// Of one rank of K3.1 at tp=8: KDA, MLA's queries, keys and indexer, both projections of the query latent, router and latent.
K31_CUDA_TEST("nn.linear.time_parts") {
  if (!timing())
    return;
  time_parts<64, 7168, 4608, 128, 1536>(), time_parts<8, 7168, 4608, 128, 1536>(), time_parts<64, 7168, 1536, 128, 32, 576>();
  time_parts<64, 1536, 4096, 2304>(), time_parts<8, 7168, 3584, 896>(), time_parts<2048, 7168, 4608, 128, 1536>();
}
K31_CUDA_TEST("nn.linear.time_many") {
  if (!timing())
    return;
  time_linear<4096, 12288, 7168>(), time_linear<8192, 12288, 7168>(), time_linear<8192, 7168, 12288>();
}

namespace {
// Epilogues of plans: KDA's log decay (a column and a value a head), two residuals, a gate.
struct LogDecay {
  static __device__ __forceinline__ void phase0(const float *in, float *out) {
    out[0] = -5.0f * k31::kernels::quotient(1.0f, 1.0f + expf(-(expf(in[2]) * (in[0] + in[1]))));
  }
};
struct Added {
  static __device__ __forceinline__ void phase0(const float *in, float *out) { out[0] = in[0] + in[1] + in[2]; }
};
struct OfGate {
  static __device__ __forceinline__ void phase0(const float *in, float *out) {
    out[0] = in[1] * k31::kernels::quotient(1.0f, 1.0f + expf(-in[0]));
  }
};
template <int rows> struct log_decay {
  static constexpr Config config{.rows = rows,
                                 .n = 12288,
                                 .k = 128,
                                 .epilogue = 1,
                                 .ld_x = 128,
                                 .extras = 2,
                                 .extra_kind = {2, 3},
                                 .extra_cols = {12288, 96},
                                 .out_type = {0},
                                 .out_ld = {12288}};
};
template <int rows, int n, int k, int extras> struct elements {
  static constexpr Config config{.rows = rows,
                                 .n = n,
                                 .k = k,
                                 .epilogue = 1,
                                 .ld_x = k,
                                 .extras = extras,
                                 .extra_kind = {0, 0},
                                 .extra_type = {1, 1},
                                 .extra_ld = {n, n},
                                 .out_type = {1},
                                 .out_ld = {n}};
};
template <class S, class R> void time_epilogue(const char *name) {
  constexpr Config c = S::config;
  constexpr bool by_element = c.extra_kind[0] == 0;
  constexpr DType out_type = (DType)c.out_type[0];
  Tensor x(DType::bf16, c.rows, c.k), w(DType::bf16, c.n, c.k), out(out_type, c.rows, c.n), count(DType::i32, 1, 1),
      first(by_element ? DType::bf16 : DType::f32, by_element ? c.rows : 1, c.n),
      second(by_element ? DType::bf16 : DType::f32, by_element ? c.rows : 1, by_element ? c.n : c.extra_cols[1]);
  x.fill_fast(), w.fill_fast(0.02f), first.fill_fast(), second.fill_fast(), count.set(0, 0, c.rows);
  Args args{x.device(),
            w.device(),
            count.device<int32_t>(),
            {first.device(), c.extras > 1 ? second.device() : out.device(), out.device()}};
  report(std::string(name) + ", " + std::to_string(c.rows) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k),
         time_us([&](int) { start<S, Chosen<S>, R>(args); }),
         2.0 * c.n * c.k + 2.0 * c.rows * c.k +
             (double)c.rows * c.n * (bytes_of_type(out_type) + (by_element ? 2 * c.extras : 0)),
         2.0 * c.rows * c.n * c.k);
}
} // namespace

K31_CUDA_TEST("nn.linear.time_epilogues") {
  if (!timing())
    return;
  time_epilogue<log_decay<8192>, LogDecay>("log decay"), time_epilogue<log_decay<64>, LogDecay>("log decay");
  time_epilogue<elements<8192, 7168, 6144, 2>, Added>("two residuals");
  time_epilogue<elements<8192, 12288, 7168, 1>, OfGate>("a gate"), time_epilogue<elements<64, 1536, 7168, 1>, OfGate>("a gate");
}
