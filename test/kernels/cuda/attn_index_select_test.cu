// attn.index_select on CUDA: scores of small integers are exact in bf16 products, so the selection is compared exactly, ties too;
// real values are compared by their scores in fp64.
#include "codegen/kernels/attn/index_select.cuh"
#include "test/kernels/cuda/batch.h"

K31_CUDA_KERNEL(index_select)
// The launch code that nvcc 13.0 writes names class types of template values by their mangled names.
using _ZN3k317kernels12index_select6ConfigE = k31::kernels::index_select::Config;
using _ZN3k317kernels12index_select4TileE = k31::kernels::index_select::Tile;

namespace {
using namespace k31::test;
using namespace k31::kernels::index_select;

enum class Draw { integers, ties, reals };

// Tolerance: 0 asks for the exact selection.
template <Config c, Tile t = choose(c)> void test(const std::vector<Batches::Run> &runs, Draw draw, double tolerance = 0) {
  constexpr int H = c.heads, D = c.head_dim;
  Batches batch(runs);
  Tensor q(c.q_type, batch.rows(), H * D, c.ld_q), w(c.w_type, batch.rows(), H, c.ld_w),
      pages(c.cache_type, batch.pool_rows(), D);
  Tensor out(DType::i32, batch.rows(), c.top_k), scratch(DType::u8, 1, workspace(c, t));
  const int span = draw == Draw::ties ? 1 : 3;
  auto value = [&]() -> double { return draw == Draw::reals ? normal() : uniform_int(-span, span); };
  q.fill(value, batch.live()), w.fill(value, batch.live()), batch.fill_pool(pages, value);
  if (batch.columns != c.blocks)
    return fail("the test's table has " + std::to_string(batch.columns) + " columns");
  for (int launches = 0; launches < 2; ++launches) { // again: barriers and histograms must have come to rest
    start<c, t>({q.device(), w.device(), pages.device(), batch.view(), out.device<int32_t>(), scratch.device()});
  }
  out.fetch();
  if (!out.untouched_outside(batch.live()))
    fail("wrote outside the live rows");
  for (int r = 0; r < batch.live(); ++r) {
    const int n = batch.position(r) + 1;
    std::vector<double> score(n, 0.0);
    for (int s = 0; s < n; ++s) {
      const int64_t key = batch.cache_row(batch.row_segment[r], s);
      for (int h = 0; h < H; ++h) {
        double dot = 0;
        for (int d = 0; d < D; ++d)
          dot += q.at(r, h * D + d) * pages.at(key, d);
        score[s] += std::max(0.0, dot * c.scale) * w.at(r, h) * c.head_scale;
      }
    }
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return score[a] > score[b]; });
    const int taken = std::min(n, c.top_k);
    const double lowest = score[order[taken - 1]];
    std::sort(order.begin(), order.begin() + taken);
    for (int i = 0, last = -1; i < c.top_k; ++i) {
      const int got = (int)out.at(r, i);
      const std::string where = "row " + std::to_string(r) + ", entry " + std::to_string(i) + " is " + std::to_string(got);
      if (i >= taken) {
        if (got != -1)
          return fail(where + ", expected -1");
      } else if (tolerance == 0) {
        if (got != order[i])
          return fail(where + ", expected " + std::to_string(order[i]));
      } else if (got <= last || got >= n || score[got] < lowest - tolerance) {
        return fail(where + ", no selected position");
      }
      last = got;
    }
  }
}

const std::vector<Batches::Run> kRuns = {{0, 19}, {255, 1}, {0, 1}, {254, 4}, {600, 1}, {700, 20}, {14, 3}};

constexpr Config config(int heads, int dim, int top_k, DType type = DType::bf16) {
  return {.rows = 52,
          .heads = heads,
          .head_dim = dim,
          .top_k = top_k,
          .max_context = 1024,
          .ld_q = heads * dim + 8,
          .ld_w = heads + 1,
          .blocks = 4,
          .scale = 0.25f,
          .head_scale = 0.5f,
          .q_type = type,
          .cache_type = type};
}
constexpr Tile few_rows(Tile t, int rows, int teams) {
  t.rows = rows, t.teams = teams;
  return t;
}

K31_CUDA_TEST("attn.index_select.exact") {
  test<config(32, 128, 64)>(kRuns, Draw::integers);
  test<config(5, 32, 16)>(kRuns, Draw::integers);
  test<config(8, 64, 700)>(kRuns, Draw::integers);
  test<config(32, 128, 64), few_rows(choose(config(32, 128, 64)), 16, 1)>(kRuns, Draw::integers);
  test<config(16, 64, 100), few_rows(choose(config(16, 64, 100)), 4, 2)>(kRuns, Draw::integers);
}
K31_CUDA_TEST("attn.index_select.ties") {
  test<config(2, 32, 64)>(kRuns, Draw::ties);
  test<config(1, 32, 300)>(kRuns, Draw::ties);
  test<config(2, 32, 33), few_rows(choose(config(2, 32, 33)), 1, 3)>(kRuns, Draw::ties);
}
K31_CUDA_TEST("attn.index_select.plain") {
  test<config(3, 20, 64, DType::f32)>(kRuns, Draw::integers);
  test<config(4, 48, 64, DType::bf16)>(kRuns, Draw::ties);
  test<config(4, 128, 64, DType::f32)>(kRuns, Draw::reals, 1e-4);
}
K31_CUDA_TEST("attn.index_select.reals") { test<config(32, 128, 100)>(kRuns, Draw::reals, 1e-3); }
} // namespace
