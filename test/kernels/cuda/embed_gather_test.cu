// nn.embed and nn.gather: rows copied.
#include "codegen/kernels/nn/embed.cuh"
#include "codegen/kernels/nn/gather.cuh"
#include "test/kernels/cuda/runner.h"

// For the launch code: see runner.h.
using _ZN3k317kernels5embed6ConfigE = k31::kernels::embed::Config;
using _ZN3k317kernels6gather6ConfigE = k31::kernels::gather::Config;
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
