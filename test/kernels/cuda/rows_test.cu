// nn.embed, nn.gather, moe.combine: rows copied and added.
#include "codegen/kernels/moe/combine.cuh"
#include "codegen/kernels/nn/embed.cuh"
#include "codegen/kernels/nn/gather.cuh"
#include "test/kernels/cuda/runner.h"

// For the launch code: see runner.h.
using _ZN3k317kernels5embed6ConfigE = k31::kernels::embed::Config;
using _ZN3k317kernels6gather6ConfigE = k31::kernels::gather::Config;
using _ZN3k317kernels7combine6ConfigE = k31::kernels::combine::Config;
using _ZN3k317kernels7RowTileE = k31::kernels::RowTile;

using namespace k31::test;

namespace embed_test {
K31_CUDA_KERNEL(embed)
using namespace k31::kernels::embed;
template <Config c> void embed(int live) {
  Tensor tokens(DType::i32, 1, c.rows), table(c.table_type, c.vocab, c.hidden), count(DType::i32, 1, 1),
      out(c.out_type, c.rows, c.hidden);
  tokens.fill([] { return uniform_int(0, c.vocab - 1); }), table.fill_normal(), count.set(0, 0, live);
  tokens.set(0, 1, -1), tokens.set(0, 2, c.vocab);
  start<c>({tokens.device<int32_t>(), table.device(), count.device<int32_t>(), out.device()});
  expect_close(
      out, live,
      [&](int64_t r, int64_t col) {
        int token = (int)tokens.at(0, r);
        return token < 0 || token >= c.vocab ? 0 : table.at(token, col);
      },
      0);
}
constexpr Config same{.rows = 40, .hidden = 264, .vocab = 100};
constexpr Config widened{.rows = 40, .hidden = 33, .vocab = 100, .out_type = DType::f32};
} // namespace embed_test
K31_CUDA_TEST("nn.embed") {
  embed_test::embed<embed_test::same>(37), embed_test::embed<embed_test::widened>(40), embed_test::embed<embed_test::same>(0);
}

namespace gather_test {
K31_CUDA_KERNEL(gather)
using namespace k31::kernels::gather;
template <Config c> void gather(int live) {
  Tensor x(c.type, 50, c.cols, c.ld_x), index(DType::i32, 1, c.rows), count(DType::i32, 1, 1),
      out(c.type, c.rows, c.cols, c.ld_out);
  x.fill_normal(), index.fill([] { return uniform_int(0, 49); }), count.set(0, 0, live);
  start<c>({x.device(), index.device<int32_t>(), count.device<int32_t>(), out.device()});
  expect_close(out, live, [&](int64_t r, int64_t col) { return x.at((int)index.at(0, r), col); }, 0);
}
constexpr Config wide{.rows = 30, .cols = 264, .ld_x = 272, .ld_out = 264};
constexpr Config odd{.rows = 30, .cols = 33, .ld_x = 35, .ld_out = 34, .type = DType::f32};
} // namespace gather_test
K31_CUDA_TEST("nn.gather") { gather_test::gather<gather_test::wide>(29), gather_test::gather<gather_test::odd>(30); }

namespace combine_test {
K31_CUDA_KERNEL(combine)
using namespace k31::kernels::combine;
template <Config c> void combine(int live) {
  Tensor x(c.x_type, c.rows * c.top_k, c.cols, c.ld_x), weights(DType::f32, c.rows, c.top_k), slot(DType::i32, c.rows, c.top_k),
      count(DType::i32, 1, 1), out(c.out_type, c.rows, c.cols, c.ld_out);
  x.fill_normal(), weights.fill([] { return uniform(0, 1); }), count.set(0, 0, live);
  slot.fill([] { return uniform_int(0, 3) ? uniform_int(0, c.rows * c.top_k - 1) : -1; });
  for (int i = 0; i < c.top_k; ++i)
    slot.set(1, i, -1); // a token without any expert here
  Args args{x.device(), {}};
  void **next = args.tail;
  if (c.weighted)
    *next++ = weights.device();
  *next++ = slot.device(), *next++ = count.device(), *next++ = out.device();
  start<c>(args);
  expect_close(
      out, live,
      [&](int64_t r, int64_t col) {
        double sum = 0;
        for (int i = 0; i < c.top_k; ++i)
          if (slot.at(r, i) >= 0)
            sum += (c.weighted ? weights.at(r, i) : 1) * x.at((int)slot.at(r, i), col);
        return sum;
      },
      1e-5);
}
constexpr Config wide{.rows = 20, .cols = 1096, .top_k = 16, .ld_x = 1096, .ld_out = 1104};
constexpr Config odd{.rows = 20, .cols = 33, .top_k = 3, .ld_x = 35, .ld_out = 33, .x_type = DType::f32, .out_type = DType::f32};
constexpr Config sums{.rows = 20, .cols = 1096, .top_k = 16, .ld_x = 1096, .ld_out = 1096, .weighted = 0};
constexpr Config odd_sums{
    .rows = 20, .cols = 33, .top_k = 3, .ld_x = 33, .ld_out = 33, .x_type = DType::f32, .out_type = DType::f32, .weighted = 0};
} // namespace combine_test
K31_CUDA_TEST("moe.combine") {
  using namespace combine_test;
  combine<wide>(18), combine<odd>(20), combine<sums>(18), combine<odd_sums>(20);
}
K31_CUDA_TEST("moe.combine.time") {
  if (!timing())
    return;
  using namespace combine_test;
  constexpr Config c{.rows = 4096, .cols = 3584, .top_k = 16, .ld_x = 3584, .ld_out = 3584};
  Tensor x(DType::bf16, c.rows * 16, c.cols), weights(DType::f32, c.rows, 16), slot(DType::i32, c.rows, 16),
      count(DType::i32, 1, 1), out(DType::bf16, c.rows, c.cols);
  x.fill_fast(), weights.fill_fast(), count.set(0, 0, c.rows), slot.fill([] { return uniform_int(0, 4096 * 16 - 1); });
  Args args{x.device(), {weights.device(), slot.device(), count.device(), out.device()}};
  report("combine 4096 x 16 x 3584", time_us([&](int) { start<c>(args); }), 2.0 * 4096 * 17 * 3584);
}
