// nn.head_linear: both layouts of W, tails, views inside wider rows, the plain form.
#include "codegen/kernels/nn/head_linear.cuh"
#include "test/kernels/cuda/runner.h"

// For the launch code: see runner.h.
using _ZN3k317kernels11head_linear6ConfigE = k31::kernels::head_linear::Config;
using _ZN3k317kernels11ProductTileE = k31::kernels::ProductTile;

K31_CUDA_KERNEL(head_linear)

namespace {

using namespace k31::test;
using namespace k31::kernels::head_linear;

template <Config c, Tile t = choose(c)> void heads(int live) {
  Tensor x(c.x_type, c.rows, c.heads * c.head_x, c.ld_x), w(c.w_type, c.heads, c.head_w), count(DType::i32, 1, 1),
      out(c.out_type, c.rows, c.heads * c.out, c.ld_out);
  x.fill_normal(), w.fill_normal(1 / std::sqrt((float)c.in)), count.set(0, 0, live);
  start<c, t>({x.device(), w.device(), count.device<int32_t>(), out.device()});
  expect_close(
      out, live,
      [&](int64_t r, int64_t col) {
        int64_t h = col / c.out, o = col % c.out;
        double sum = 0;
        for (int i = 0; i < c.in; ++i)
          sum += x.at(r, h * c.head_x + i) * w.at(h, c.w_begin + (c.transposed ? i * c.out + o : o * c.in + i));
        return sum;
      },
      1e-4);
}

constexpr Config up{
    .rows = 64, .heads = 3, .in = 128, .out = 136, .transposed = 1, .ld_x = 600, .head_x = 192, .head_w = 40000, .ld_out = 416};
constexpr Config up_prefill{
    .rows = 300, .heads = 2, .in = 104, .out = 72, .transposed = 1, .ld_x = 384, .head_x = 192, .head_w = 15000, .ld_out = 144};
constexpr Config down{
    .rows = 10, .heads = 3, .in = 200, .out = 128, .ld_x = 600, .head_x = 200, .head_w = 51200, .w_begin = 25600, .ld_out = 384};
constexpr Config down_prefill{.rows = 300,
                              .heads = 2,
                              .in = 512,
                              .out = 128,
                              .ld_x = 1024,
                              .head_x = 512,
                              .head_w = 131072,
                              .w_begin = 65536,
                              .ld_out = 256};
constexpr Config odd{.rows = 20,
                     .heads = 3,
                     .in = 13,
                     .out = 35,
                     .transposed = 1,
                     .ld_x = 60,
                     .head_x = 19,
                     .head_w = 460,
                     .w_begin = 3,
                     .ld_out = 105};
constexpr Config fp32{.rows = 20,
                      .heads = 3,
                      .in = 16,
                      .out = 40,
                      .ld_x = 60,
                      .head_x = 20,
                      .head_w = 640,
                      .ld_out = 120,
                      .x_type = DType::f32,
                      .w_type = DType::f32,
                      .out_type = DType::f32};

} // namespace

K31_CUDA_TEST("nn.head_linear.transposed") { heads<up>(64), heads<up>(1), heads<up>(33), heads<up_prefill>(290); }
K31_CUDA_TEST("nn.head_linear.rows") { heads<down>(9), heads<down_prefill>(300), heads<down_prefill>(17); }
K31_CUDA_TEST("nn.head_linear.plain") { heads<odd>(18), heads<fp32>(20), heads<fp32>(0); }

namespace {
template <int rows, bool transposed> void time_heads() {
  constexpr int in = transposed ? 128 : 512, out_cols = transposed ? 512 : 128, n = 96;
  constexpr Config c{.rows = rows,
                     .heads = n,
                     .in = in,
                     .out = out_cols,
                     .transposed = transposed,
                     .ld_x = n * in,
                     .head_x = in,
                     .head_w = 131072,
                     .w_begin = transposed ? 0 : 65536,
                     .ld_out = n * out_cols};
  Tensor x(DType::bf16, rows, c.ld_x), w(DType::bf16, n * 8, c.head_w), out(DType::bf16, rows, c.ld_out), count(DType::i32, 1, 1);
  x.fill_fast(), w.fill_fast(0.05f), count.set(0, 0, rows);
  Args args{x.device(), w.device(), count.device<int32_t>(), out.device()};
  double us = time_us([&](int i) {
    args.w = w.device<uint16_t>() + (int64_t)(i % 8) * n * c.head_w;
    start<c>(args);
  });
  report("head_linear " + std::to_string(rows) + " rows, " + std::to_string(in) + " to " + std::to_string(out_cols), us,
         2.0 * n * in * out_cols + 2.0 * rows * n * (in + out_cols), 2.0 * rows * n * in * out_cols);
}
} // namespace

K31_CUDA_TEST("nn.head_linear.time") {
  if (!timing())
    return;
  time_heads<1, true>(), time_heads<64, true>(), time_heads<64, false>(), time_heads<4096, true>(), time_heads<4096, false>();
}
