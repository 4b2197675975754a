// moe.grouped_linear: MXFP4 and bf16 weights in all forms, empty and crowded experts, pairs, ends of the range of scales.
#include "codegen/kernels/moe/grouped_linear.cuh"
#include "test/kernels/cuda/gated.h"
#include "test/kernels/cuda/runner.h"

// For the launch code: see runner.h.
using _ZN3k317kernels14grouped_linear6ConfigE = k31::kernels::grouped_linear::Config;
using _ZN3k317kernels11ProductTileE = k31::kernels::ProductTile;

K31_CUDA_KERNEL(grouped_linear)

namespace {

using namespace k31::test;
using namespace k31::kernels::grouped_linear;

double code_value(int code) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -values[code & 7] : values[code & 7];
}

// counts[e] rows for expert e; dead rows follow. With `shift`, the kernel's rows of x begin so many elements later than the
// tensor's, which makes them unaligned; ld_x is k then, and the last row is dead.
template <Config c, Tile t = choose(c), class R = k31::kernels::NoRegion>
void grouped(const std::vector<int> &counts, int low_scale = 120, int high_scale = 126, int shift = 0) {
  Tensor x(c.x_type, c.rows, c.k, c.ld_x), offsets(DType::i32, 1, c.experts + 1);
  Tensor w(c.mxfp4 ? DType::u8 : c.w_type, (int64_t)c.experts * c.n, c.mxfp4 ? c.k / 2 : c.k),
      scale(DType::u8, (int64_t)c.experts * c.n, c.k / 32);
  constexpr int cols = c.pair ? c.n / 2 : c.n;
  Tensor out(c.out_type, c.rows, cols, c.ld_out);
  int live = 0;
  for (int e = 0; e < c.experts; ++e)
    offsets.set(0, e, live), live += counts[e % counts.size()];
  offsets.set(0, c.experts, live);
  if (live > c.rows)
    return fail("the test has more rows than its capacity");
  if (shift && (c.ld_x != c.k || live == c.rows))
    return fail("a shift needs rows of x without gaps, and a dead one");
  x.fill_normal(0.5f);
  if (c.mxfp4)
    w.fill([] { return uniform_int(0, 255); }), scale.fill([&] { return uniform_int(low_scale, high_scale); });
  else
    w.fill_normal(0.2f);
  Args args{x.device<char>() + shift * k31::kernels::bytes_of_type(c.x_type), w.device(), {}};
  int at = 0;
  if (c.mxfp4)
    args.tail[at++] = scale.device();
  args.tail[at++] = offsets.device(), args.tail[at++] = out.device();
  start<c, t, R>(args);
  double unit = c.mxfp4 ? std::ldexp(1, high_scale - 127) * std::sqrt(c.k) * 3 : std::sqrt(c.k) * 0.2;
  std::vector<int> expert_of(live + 1);
  for (int e = 0, row = 0; e < c.experts; ++e)
    for (int i = 0; i < counts[e % counts.size()]; ++i)
      expert_of[row++] = e;
  std::vector<float> of_x, of_w; // the values, without gaps: all of them are exact
  for (int64_t r = 0; r < live; ++r)
    for (int k = 0; k < c.k; ++k)
      of_x.push_back((float)x.at(r + (k + shift) / c.ld_x, (k + shift) % c.ld_x));
  for (int64_t r = 0; r < w.rows(); ++r)
    for (int k = 0; k < c.k; ++k)
      of_w.push_back(
          (float)(c.mxfp4 ? std::ldexp(code_value(((int)w.at(r, k / 2) >> (k % 2 * 4)) & 15), (int)scale.at(r, k / 32) - 127)
                          : w.at(r, k)));
  auto dot = [&](int64_t r, int64_t n) {
    const float *x_row = of_x.data() + r * c.k, *w_row = of_w.data() + ((int64_t)expert_of[r] * c.n + n) * c.k;
    double sum = 0;
    for (int k = 0; k < c.k; ++k)
      sum += (double)x_row[k] * w_row[k];
    return sum;
  };
  expect_close(
      out, live, [&](int64_t r, int64_t col) { return gated_dot<c.pair != 0>(r, col, dot); }, 3e-5 * unit * (c.pair ? unit : 1));
}

constexpr Config few{.rows = 24, .experts = 40, .n = 80, .k = 416, .ld_x = 424, .ld_out = 80, .out_type = DType::f32};
constexpr Config few_pairs{
    .rows = 24, .experts = 5, .n = 96, .k = 544, .pair = 1, .epilogue = 1, .ld_x = 544, .ld_out = 48, .out_type = DType::f32};
constexpr Config many{.rows = 900, .experts = 5, .n = 272, .k = 224, .ld_x = 224, .ld_out = 280};
constexpr Config many_pairs{
    .rows = 900, .experts = 5, .n = 320, .k = 160, .pair = 1, .epilogue = 1, .ld_x = 160, .ld_out = 160, .out_type = DType::f32};
constexpr Config deep{.rows = 300, .experts = 5, .n = 288, .k = 1280, .ld_x = 1288, .ld_out = 288, .out_type = DType::f32};
constexpr Config every{.rows = 257 * 258 / 2, .experts = 257, .n = 96, .k = 96, .ld_x = 96, .ld_out = 96, .out_type = DType::f32};
// More tiles than blocks, so that a block goes from one width to another.
constexpr Config around{.rows = 940, .experts = 16, .n = 3088, .k = 224, .ld_x = 232, .ld_out = 3096, .out_type = DType::f32};
constexpr Config around_pairs{.rows = 940,
                              .experts = 16,
                              .n = 2336,
                              .k = 544,
                              .pair = 1,
                              .epilogue = 1,
                              .ld_x = 544,
                              .ld_out = 1176,
                              .out_type = DType::f32};
constexpr Config some{.rows = 400, .experts = 5, .n = 144, .k = 96, .ld_x = 96, .ld_out = 144, .out_type = DType::f32};
constexpr Config plain{
    .rows = 60, .experts = 5, .n = 48, .k = 64, .ld_x = 65, .ld_out = 48, .x_type = DType::f32, .out_type = DType::f32};
constexpr Config plain_pairs{.rows = 60,
                             .experts = 5,
                             .n = 96,
                             .k = 64,
                             .pair = 1,
                             .epilogue = 1,
                             .ld_x = 65,
                             .ld_out = 48,
                             .x_type = DType::f32,
                             .out_type = DType::f32};
constexpr Config bf16_few{.rows = 24, .experts = 5, .n = 80, .k = 200, .mxfp4 = 0, .ld_x = 200, .ld_out = 80};
constexpr Config bf16_many{.rows = 900, .experts = 5, .n = 144, .k = 200, .mxfp4 = 0, .ld_x = 200, .ld_out = 144};
static_assert(choose(few).form == k31::kernels::kThin);
constexpr Tile high = wide_tile(64); // what larger matrices are given

} // namespace

K31_CUDA_TEST("moe.grouped_linear.thin") { grouped<few>({1, 0, 0, 2, 0}), grouped<few>({0, 0, 0, 0, 0, 0, 0, 0, 0, 4}); }
K31_CUDA_TEST("moe.grouped_linear.one_expert") { // all rows of the capacity
  grouped<few_pairs, choose(few_pairs), Gated>({0, 0, 24, 0, 0}), grouped<many, decoded_tile(64)>({0, 0, 0, 0, 900}),
      grouped<many, decoded_tile(96)>({900, 0, 0, 0, 0}), grouped<bf16_many, high>({0, 900, 0, 0, 0}),
      grouped<many_pairs, decoded_tile(96), Gated>({0, 0, 0, 881, 0});
}
K31_CUDA_TEST("moe.grouped_linear.unaligned") { // by plain loops
  grouped<some, decoded_tile(32)>({0, 33, 70, 1, 32}, 120, 126, 1), grouped<bf16_many, high>({3, 0, 170, 300, 64}, 120, 126, 3),
      grouped<few_pairs, choose(few_pairs), Gated>({3, 0, 1, 16, 2}, 120, 126, 5);
}
K31_CUDA_TEST("moe.grouped_linear.thin_pairs") { grouped<few_pairs, choose(few_pairs), Gated>({3, 0, 1, 17, 2}); }
K31_CUDA_TEST("moe.grouped_linear.decoded") {
  grouped<many, decoded_tile(64)>({3, 0, 170, 300, 64}), grouped<some, decoded_tile(32)>({0, 33, 70, 1, 32}),
      grouped<many_pairs, decoded_tile(64), Gated>({0, 129, 5, 64, 257}), grouped<deep, decoded_tile(64)>({65, 1, 0, 64, 128}),
      grouped<deep, decoded_tile(64)>({127, 1, 0, 2, 128}), grouped<many, decoded_tile(96)>({3, 0, 170, 300, 96}),
      grouped<some, decoded_tile(48)>({0, 49, 70, 1, 48}), grouped<many_pairs, decoded_tile(96), Gated>({0, 129, 5, 96, 257}),
      grouped<many, decoded_tile(64)>({0}), grouped<many, decoded_tile(64)>({3, 0, 170, 300, 64}, 100, 104);
}
K31_CUDA_TEST("moe.grouped_linear.widths") { // counts around each width, in an order that mixes wide and narrow tiles
  const std::vector<int> counts = {146, 1, 97, 0, 16, 95, 17, 48, 15, 96, 33, 193, 47, 32, 49, 31};
  const std::vector<int> shares = {80, 64, 81, 0, 63, 65, 79, 160, 8, 161, 9, 97, 24, 2, 40, 1}; // of two tiles as well
  grouped<around, decoded_tile(96)>(counts), grouped<around_pairs, decoded_tile(96), Gated>(counts),
      grouped<around, decoded_tile(96)>(shares), grouped<around_pairs, decoded_tile(96), Gated>(shares);
}
K31_CUDA_TEST("moe.grouped_linear.every_count") { // 1 to 257 rows, for tiles of each height
  std::vector<int> counts(every.experts);
  for (int e = 0; e < every.experts; ++e)
    counts[e] = e + 1;
  grouped<every, thin_tile(8, every)>(counts), grouped<every, thin_tile(16, every)>(counts),
      grouped<every, decoded_tile(32)>(counts), grouped<every, decoded_tile(48)>(counts),
      grouped<every, decoded_tile(64)>(counts), grouped<every, decoded_tile(96)>(counts);
}
K31_CUDA_TEST("moe.grouped_linear.plain") {
  grouped<plain>({3, 0, 17, 20, 1}), grouped<plain_pairs, choose(plain_pairs), Gated>({3, 0, 17, 20, 1});
}
K31_CUDA_TEST("moe.grouped_linear.bf16") { grouped<bf16_few>({3, 0, 1, 17, 2}), grouped<bf16_many, high>({3, 0, 170, 300, 64}); }
K31_CUDA_TEST("moe.grouped_linear.no_rows") { grouped<few>({0}), grouped<bf16_many, high>({0}), grouped<plain>({0}); }
K31_CUDA_TEST("moe.grouped_linear.scales") {
  grouped<few>({1, 0, 0, 2, 0}, 60, 66), grouped<few>({1, 0, 0, 2, 0}, 150, 158),
      grouped<many, decoded_tile(64)>({3, 0, 170, 300, 64}, 150, 158);
}
