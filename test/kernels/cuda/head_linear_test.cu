// nn.head_linear: both layouts of W, x in bf16 and fp32, tails, views inside wider rows, the plain form.
#include "codegen/kernels/nn/head_linear.cuh"
#include "test/kernels/cuda/runner.h"
#include <utility>

// For the launch code: see runner.h.
using _ZN3k317kernels11head_linear6ConfigE = k31::kernels::head_linear::Config;
using _ZN3k317kernels11ProductTileE = k31::kernels::ProductTile;

K31_CUDA_KERNEL(head_linear)

namespace {

using namespace k31::test;
using namespace k31::kernels;
using namespace k31::kernels::head_linear;

// `shift`: x starts so many values past an aligned address.
template <Config c, Tile t = choose(c)> void heads(int live, int shift = 0, double tolerance = 1e-4) {
  Tensor x(c.x_type, c.rows, shift + c.heads * c.head_x, c.ld_x), w(c.w_type, c.heads, c.head_w), count(DType::i32, 1, 1),
      out(c.out_type, c.rows, c.heads * c.out, c.ld_out);
  x.fill_normal(), w.fill_normal(1 / std::sqrt((float)c.in)), count.set(0, 0, live);
  const void *x_at = (const char *)x.device() + shift * bytes_of_type(c.x_type);
  start<c, t>({x_at, w.device(), count.device<int32_t>(), out.device()});
  expect_close(
      out, live,
      [&](int64_t r, int64_t col) {
        int64_t h = col / c.out, o = col % c.out;
        double sum = 0;
        for (int i = 0; i < c.in; ++i)
          sum += x.at(r, shift + h * c.head_x + i) * w.at(h, c.w_begin + (c.transposed ? i * c.out + o : o * c.in + i));
        return sum;
      },
      tolerance);
}
// By every tile that fits.
template <Config c> void each_tile(int live) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (heads<c, candidates(c).tile[I]>(live), ...);
  }(std::make_integer_sequence<int, candidates(c).count>());
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

// fp32 x, by tensor cores.
constexpr Config with_fp32(Config c, DType out) {
  c.x_type = DType::f32, c.out_type = out;
  return c;
}
constexpr Config latent = with_fp32(down, DType::bf16), latent_prefill = with_fp32(down_prefill, DType::bf16);
constexpr Config latent_tails{.rows = 150, // no tile is full: rows, columns of K and of the result
                              .heads = 2,
                              .in = 200,
                              .out = 72,
                              .ld_x = 424,
                              .head_x = 208,
                              .head_w = 14408,
                              .w_begin = 8,
                              .ld_out = 147,
                              .x_type = DType::f32};
constexpr Config latent_up = with_fp32(up, DType::f32);
static_assert(choose(latent).form == kWide && choose(latent_prefill).form == kWide && choose(latent_up).form == kWide);
static_assert(choose(latent).ahead && choose(latent).warps_k == 4 && !choose(latent_prefill).ahead);

} // namespace

K31_CUDA_TEST("nn.head_linear.transposed") { heads<up>(64), heads<up>(1), heads<up>(33), heads<up_prefill>(290); }
K31_CUDA_TEST("nn.head_linear.rows") { heads<down>(9), heads<down_prefill>(300), heads<down_prefill>(17); }
K31_CUDA_TEST("nn.head_linear.plain") { heads<odd>(18), heads<fp32>(20), heads<fp32>(0); }
K31_CUDA_TEST("nn.head_linear.fp32") {
  heads<latent>(10), heads<latent>(1), heads<latent>(0), heads<latent_prefill>(300), heads<latent_prefill>(17);
  heads<latent_up>(64), heads<latent_up>(33), heads<latent_up>(0);
}
K31_CUDA_TEST("nn.head_linear.fp32.tiles") {
  constexpr Config few = [] {
    Config c = latent_tails;
    c.rows = 70;
    return c;
  }();
  each_tile<few>(69), each_tile<latent_tails>(133), each_tile<latent_up>(50);
}
K31_CUDA_TEST("nn.head_linear.fp32.unaligned") {
  heads<latent_tails>(20, 1), heads<latent_tails>(150, 2), heads<latent_up>(30, 3);
}
// Results of about 1: x rounded to bf16 would be off by 1e-3.
K31_CUDA_TEST("nn.head_linear.fp32.precision") {
  heads<with_fp32(down_prefill, DType::f32)>(40, 0, 5e-5), heads<with_fp32(down, DType::f32)>(10, 0, 5e-5);
  heads<with_fp32(up, DType::f32)>(64, 0, 5e-5);
}

namespace {
template <int rows, bool transposed, DType x_type = DType::bf16, int n = 96> void time_heads() {
  constexpr int in = transposed ? 128 : 512, out_cols = transposed ? 512 : 128,
                copies = 768 / n; // of W, more than the caches hold
  constexpr Config c{.rows = rows,
                     .heads = n,
                     .in = in,
                     .out = out_cols,
                     .transposed = transposed,
                     .ld_x = n * in,
                     .head_x = in,
                     .head_w = 131072,
                     .w_begin = transposed ? 0 : 65536,
                     .ld_out = n * out_cols,
                     .x_type = x_type};
  Tensor x(x_type, rows, c.ld_x), w(DType::bf16, n * copies, c.head_w), out(DType::bf16, rows, c.ld_out), count(DType::i32, 1, 1);
  x.fill_fast(), w.fill_fast(0.05f), count.set(0, 0, rows);
  Args args{x.device(), w.device(), count.device<int32_t>(), out.device()};
  double us = time_us(
      [&](int i) {
        args.w = w.device<uint16_t>() + (int64_t)(i % copies) * n * c.head_w;
        start<c>(args);
      },
      rows <= 64 ? most(copies, 20) : 20);
  report("head_linear " + std::to_string(rows) + (x_type == DType::f32 ? " rows of fp32, " : " rows, ") + std::to_string(n) +
             " heads, " + std::to_string(in) + " to " + std::to_string(out_cols),
         us, 2.0 * n * in * out_cols + 1.0 * rows * n * (in * bytes_of_type(x_type) + out_cols * 2),
         1.0 * rows * n * in * out_cols * bytes_of_type(x_type)); // fp32: each product twice
}
} // namespace

K31_CUDA_TEST("nn.head_linear.time") {
  if (!timing())
    return;
  time_heads<1, true>(), time_heads<64, true>(), time_heads<64, false>(), time_heads<4096, true>(), time_heads<4096, false>();
  time_heads<1, false, DType::f32, 12>(), time_heads<64, false, DType::f32, 12>(), time_heads<2048, false, DType::f32, 12>();
  time_heads<8192, false, DType::f32, 12>(), time_heads<1, false, DType::f32>(), time_heads<64, false, DType::f32>();
  time_heads<2048, false, DType::f32>(), time_heads<8192, false, DType::f32>();
}
