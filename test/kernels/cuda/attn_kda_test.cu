// attn.kda on CUDA against the recurrence token by token in fp64: outputs, states, forks, every kind of decay.
#include "codegen/kernels/attn/kda.cuh"
#include "test/kernels/common/decay.h"
#include "test/kernels/cuda/batch.h"

K31_CUDA_KERNEL(kda)
// The launch code that nvcc 13.0 writes names class types of template values by their mangled names.
using _ZN3k317kernels3kda6ConfigE = k31::kernels::kda::Config;
using _ZN3k317kernels3kda4TileE = k31::kernels::kda::Tile;

namespace {
using namespace k31::test;
using namespace k31::kernels::kda;

constexpr int kSlots = 10;

template <Config c, Tile t = choose(c)>
void test(const std::vector<Batches::Run> &runs, double tolerance, Decay decay = Decay::bounded) {
  constexpr int D = c.head_dim, H = c.heads;
  Batches batch(runs);
  Tensor q(c.qkv_type, batch.rows(), H * D, c.ld_qkv), k(c.qkv_type, batch.rows(), H * D, c.ld_qkv),
      v(c.qkv_type, batch.rows(), H * D, c.ld_qkv), g(DType::f32, batch.rows(), H * D, c.ld_g),
      beta(DType::f32, batch.rows(), H, c.ld_beta), state(DType::f32, (int64_t)kSlots * H * D, D),
      out(c.out_type, batch.rows(), H * D, c.ld_out);
  q.fill_normal(1, batch.live()), k.fill_normal(1, batch.live()), v.fill_normal(1, batch.live());
  g.fill([&] { return draw_decay(decay); }, batch.live());
  beta.fill([] { return uniform(0, 1); }, batch.live());
  state.fill_normal();
  std::vector<std::vector<double>> want(batch.live(), std::vector<double>(H * D)), states(state.rows());
  for (int64_t r = 0; r < state.rows(); ++r)
    for (int i = 0; i < D; ++i)
      states[r].push_back(state.at(r, i));
  for (int s = 0; s < batch.live_segments(); ++s)
    for (int h = 0; h < H; ++h) {
      const auto &segment = batch.segments[s];
      std::vector<double> m(D * D, 0.0), a(D), b(D);
      for (int i = 0; i < D * D && segment.slot_in >= 0; ++i)
        m[i] = state.at(((int64_t)segment.slot_in * H + h) * D + i / D, i % D);
      for (int r = segment.row_begin; r < segment.row_begin + segment.length; ++r) {
        double qq = 1e-6, kk = 1e-6;
        for (int d = 0; d < D; ++d) {
          a[d] = q.at(r, h * D + d), b[d] = k.at(r, h * D + d);
          qq += a[d] * a[d], kk += b[d] * b[d];
        }
        for (int d = 0; d < D; ++d) {
          a[d] /= std::sqrt(qq) * std::sqrt((double)D), b[d] /= std::sqrt(kk);
          for (int x = 0; x < D; ++x)
            m[d * D + x] *= std::exp(g.at(r, h * D + d));
        }
        for (int x = 0; x < D; ++x) {
          double seen = 0, y = 0;
          for (int d = 0; d < D; ++d)
            seen += b[d] * m[d * D + x];
          const double delta = beta.at(r, h) * (v.at(r, h * D + x) - seen);
          for (int d = 0; d < D; ++d) {
            m[d * D + x] += b[d] * delta;
            y += a[d] * m[d * D + x];
          }
          want[r][h * D + x] = y;
        }
      }
      for (int i = 0; i < D * D; ++i)
        states[((int64_t)segment.slot_out * H + h) * D + i / D][i % D] = m[i];
    }
  start<c, t>({q.device(), k.device(), v.device(), g.device<float>(), beta.device<float>(), state.device<float>(), batch.view(),
               out.device()});
  expect_close(out, batch.live(), [&](int64_t r, int64_t i) { return want[r][i]; }, tolerance);
  expect_close(state, state.rows(), [&](int64_t r, int64_t i) { return states[r][i]; }, tolerance * 4, "state");
}

// Prefill, decode, one token from nothing, a fork (slot_in stays) and a long continuation.
const std::vector<Batches::Run> kRuns = {{0, 37, -1, 4}, {7, 1, 1, 1},    {0, 1, -1, 7},
                                         {12, 3, 3, 6},  {100, 16, 5, 5}, {30, 50, 8, 2}};

constexpr Config config(int heads, int dim, int chunk, DType in = DType::f32, DType out = DType::f32) {
  return {.rows = 111,
          .heads = heads,
          .head_dim = dim,
          .ld_qkv = 2 * heads * dim,
          .ld_g = heads * dim,
          .ld_beta = heads,
          .ld_out = heads * dim + 8,
          .chunk = chunk,
          .qkv_type = in,
          .out_type = out};
}

K31_CUDA_TEST("attn.kda.tokens") {
  test<config(3, 16, 1)>(kRuns, 2e-5);
  test<config(2, 128, 1)>(kRuns, 2e-5);
  test<config(3, 48, 1)>(kRuns, 2e-5);
  test<config(1, 256, 1)>(kRuns, 2e-5);
  test<config(2, 16, 1)>(kRuns, 2e-5, Decay::strong), test<config(2, 16, 1)>(kRuns, 2e-5, Decay::cut);
  test<config(2, 128, 1, DType::bf16, DType::bf16)>(kRuns, 2e-5);
  test<config(2, 64, 1, DType::bf16), Tile{.blocks = 1}>(kRuns, 2e-5, Decay::mixed);
}
K31_CUDA_TEST("attn.kda.chunks") {
  for (Decay decay : {Decay::bounded, Decay::weak, Decay::strong, Decay::mixed, Decay::cut}) {
    test<config(2, 128, 16)>(kRuns, 2e-5, decay);
    test<config(2, 32, 16)>(kRuns, 2e-5, decay);
    test<config(2, 128, 16, DType::bf16, DType::bf16)>(kRuns, 1e-2, decay); // products of bf16
    test<config(3, 64, 64, DType::bf16)>(kRuns, 1e-2, decay);
  }
}
// Blocks that go from segment to segment.
constexpr Tile of_blocks(Tile t, int blocks) { return t.blocks = blocks, t; }
constexpr Config wide = config(2, 128, 16, DType::bf16, DType::bf16), narrow = config(1, 64, 16, DType::bf16);
void few_blocks(const std::vector<Batches::Run> &runs, Decay decay) {
  test<wide, of_blocks(choose(wide), 1)>(runs, 1e-2, decay);
  test<wide, of_blocks(choose(wide), 3)>(runs, 1e-2, decay);
  test<narrow, of_blocks(choose(narrow), 1)>(runs, 1e-2, decay);
}
K31_CUDA_TEST("attn.kda.segments") { // all by chunks: the next segment's are prepared while the state of the last is written
  few_blocks({{0, 37, -1, 4}, {12, 33, 3, 6}, {30, 50, 8, 2}, {64, 18, -1, 9}}, Decay::bounded);
}
K31_CUDA_TEST("attn.kda.turns") { // long ones by chunks, short ones token by token in the same shared memory
  const std::vector<Batches::Run> turns = {{0, 16, -1, 4}, {7, 1, 1, 1},   {0, 15, -1, 7},  {12, 33, 3, 6},
                                           {100, 2, 5, 5}, {30, 17, 8, 2}, {64, 18, -1, 9}, {64, 9, 0, 0}};
  for (Decay decay : {Decay::bounded, Decay::mixed})
    few_blocks(kRuns, decay), few_blocks(turns, decay);
}
K31_CUDA_TEST("attn.kda.time") {
  if (!timing())
    return;
  constexpr int H = 96, D = 128;
  constexpr Config decode{
      .rows = 256, .heads = H, .head_dim = D, .ld_qkv = 3 * H * D, .ld_g = H * D, .ld_beta = H, .ld_out = H * D, .chunk = 1};
  constexpr Config prefill{
      .rows = 8192, .heads = H, .head_dim = D, .ld_qkv = 3 * H * D, .ld_g = H * D, .ld_beta = H, .ld_out = H * D, .chunk = 16};
  auto measure = [](auto launch, const std::vector<Batches::Run> &runs, int rows, const char *what) {
    Batches batch(runs, 0);
    const int slots = (int)runs.size();
    Tensor qkv(DType::bf16, rows, 3 * H * D), g(DType::f32, rows, H * D), beta(DType::f32, rows, H),
        state(DType::f32, (int64_t)slots * H * D, D), out(DType::bf16, rows, H * D);
    qkv.fill_fast(), state.fill_fast(0.1f);
    g.fill([i = 0]() mutable { return -0.01f * (float)(1 + i++ % 400); });
    beta.fill([i = 0]() mutable { return 0.1f + 0.01f * (float)(i++ % 80); });
    char *x = qkv.device<char>();
    Args args{
        x,           x + 2 * H * D, x + 4 * H * D, g.device<float>(), beta.device<float>(), state.device<float>(), batch.view(),
        out.device()};
    double us = time_us([&](int) { launch(args); }, rows > 1024 ? 3 : 20);
    report("kda " + std::string(what) + ", " + std::to_string(rows) + " rows", us,
           (double)rows * H * D * 12 + (double)slots * H * D * D * 8);
  };
  for (int rows : {1, 8, 32, 128, 256}) {
    std::vector<Batches::Run> runs;
    for (int i = 0; i < rows; ++i)
      runs.push_back({100, 1, i, i});
    measure(start<decode>, runs, rows, "decode 96 heads");
  }
  for (int rows : {1024, 8192})
    measure(start<prefill>, {{0, rows, -1, 0}}, rows, "prefill 96 heads");
}
} // namespace
