// attn.short_conv on CUDA against plain loops: outputs and windows, one thread's run shorter and longer than a segment.
#include "codegen/kernels/attn/short_conv.cuh"
#include "test/kernels/cuda/batch.h"

K31_CUDA_KERNEL(short_conv)
// The launch code that nvcc 13.0 writes names class types of template values by their mangled names.
using _ZN3k317kernels10short_conv6ConfigE = k31::kernels::short_conv::Config;
using _ZN3k317kernels10short_conv4TileE = k31::kernels::short_conv::Tile;

namespace {
using namespace k31::test;
using namespace k31::kernels::short_conv;

struct Silu {
  static __device__ void phase0(const float *in, float *out) { out[0] = in[0] / (1 + expf(-in[0])); }
};

constexpr int kSlots = 9;

template <Config c, Tile t = choose(c)> void test(const std::vector<Batches::Run> &runs) {
  constexpr int kPast = c.taps - 1;
  Batches batch(runs);
  Tensor x(c.x_type, batch.rows(), c.channels, c.ld_x), w(c.w_type, c.channels, c.taps);
  Tensor window(c.window_type, (int64_t)kSlots * kPast, c.channels), out(c.out_type, batch.rows(), c.channels, c.ld_out);
  x.fill_normal(1, batch.live()), w.fill_normal(), window.fill_normal();
  std::vector<std::vector<double>> want(batch.live(), std::vector<double>(c.channels)), slots(window.rows());
  for (int64_t r = 0; r < window.rows(); ++r)
    for (int i = 0; i < c.channels; ++i)
      slots[r].push_back(window.at(r, i));
  for (int s = 0; s < batch.live_segments(); ++s) {
    const auto &segment = batch.segments[s];
    auto input = [&](int offset, int channel) { // of the segment; negative: before it
      if (offset >= 0)
        return x.at(segment.row_begin + offset, channel);
      return segment.slot_in < 0 ? 0 : window.at((int64_t)segment.slot_in * kPast + kPast + offset, channel);
    };
    for (int i = 0; i < c.channels; ++i) {
      for (int o = 0; o < segment.length; ++o) {
        double y = 0;
        for (int j = 0; j <= kPast; ++j)
          y += w.at(i, j) * input(o - kPast + j, i);
        want[segment.row_begin + o][i] = c.epilogue ? y / (1 + std::exp(-y)) : y;
      }
      for (int j = 0; j < kPast; ++j)
        slots[segment.slot_out * kPast + j][i] = input(segment.length - kPast + j, i);
    }
  }
  start<c, t, Silu>({x.device(), w.device(), window.device(), batch.view(), out.device()});
  expect_close(out, batch.live(), [&](int64_t r, int64_t i) { return want[r][i]; }, 1e-5);
  expect_close(window, window.rows(), [&](int64_t r, int64_t i) { return slots[r][i]; }, 0, "window");
}

const std::vector<Batches::Run> kRuns = {{0, 37, -1, 4}, {7, 1, 1, 1},   {0, 1, -1, 7},
                                         {12, 3, 3, 6},  {100, 2, 5, 5}, {30, 50, 8, 2}};

K31_CUDA_TEST("attn.short_conv.vectors") {
  constexpr Config c{.rows = 97, .channels = 64, .ld_x = 72, .ld_out = 64, .epilogue = 1};
  test<c>(kRuns);
  test<c, Tile{.rows = 1}>(kRuns);
  test<c, Tile{.blocks = 1, .rows = 4}>(kRuns); // one block: long runs
  test<c, Tile{.blocks = 1, .rows = 64}>(kRuns);
  test<Config{.rows = 97,
              .channels = 24,
              .ld_x = 24,
              .ld_out = 32,
              .x_type = DType::f32,
              .window_type = DType::f32,
              .out_type = DType::f32}>(kRuns);
}
K31_CUDA_TEST("attn.short_conv.scalars") {
  test<Config{.rows = 97, .channels = 13, .ld_x = 15, .ld_out = 17, .epilogue = 1}>(kRuns);
  test<Config{.rows = 97, .channels = 12, .taps = 2, .ld_x = 13, .ld_out = 12, .x_type = DType::f32},
       Tile{.blocks = 1, .rows = 7}>(kRuns);
  test<Config{.rows = 97, .channels = 16, .taps = 8, .ld_x = 16, .ld_out = 16}, Tile{.rows = 2}>(kRuns);
}
K31_CUDA_TEST("attn.short_conv.time") {
  if (!timing())
    return;
  constexpr Config c{.rows = 4096, .channels = 36864, .ld_x = 36864, .ld_out = 36864, .epilogue = 1};
  for (int rows : {1, 64, 4096}) {
    std::vector<Batches::Run> runs;
    if (rows == 4096)
      runs = {{0, rows, 0, 0}};
    else
      for (int i = 0; i < rows; ++i)
        runs.push_back({100, 1, i, i});
    Batches batch(runs, 0);
    Tensor x(DType::bf16, rows, c.channels), w(DType::f32, c.channels, 4),
        window(DType::bf16, (int64_t)runs.size() * 3, c.channels);
    Tensor out(DType::bf16, rows, c.channels);
    x.fill_fast(), w.fill_fast(), window.fill_fast();
    Args args{x.device(), w.device(), window.device(), batch.view(), out.device()};
    double us = time_us([&](int) { start<c, choose(c), Silu>(args); });
    report("short_conv 36864 channels, " + std::to_string(rows) + " rows", us,
           2.0 * c.channels * (2.0 * rows + 6.0 * runs.size()) + 16.0 * c.channels);
  }
}
} // namespace
