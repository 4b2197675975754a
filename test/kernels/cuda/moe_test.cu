// moe.route and moe.permute.
#include "codegen/kernels/moe/permute.cuh"
#include "codegen/kernels/moe/route.cuh"
#include "test/kernels/cuda/runner.h"
#include <algorithm>
#include <numeric>

// For the launch code: see runner.h.
using _ZN3k317kernels7permute6ConfigE = k31::kernels::permute::Config;
using _ZN3k317kernels7permute4TileE = k31::kernels::permute::Tile;

using namespace k31::test;

namespace route_test {
K31_CUDA_KERNEL_BY_TYPE(route)
using namespace k31::kernels::route;

// Scores are compared in fp64; two that are closer than fp32 tells apart may change places, so the scores of the chosen are
// compared place by place, and ids must be distinct. `ties`: logits of few values, where the order of ids counts exactly.
template <class S> void route(int live, bool ties) {
  constexpr Config c = S::config;
  Tensor logits(DType::f32, c.rows, c.experts, c.ld_logits), bias(c.bias_type, 1, c.experts), count(DType::i32, 1, 1),
      ids(DType::i32, c.rows, c.top_k), weights(DType::f32, c.rows, c.top_k);
  if (ties)
    logits.fill([] { return uniform_int(-2, 2); }), bias.fill([] { return 0.0; });
  else
    logits.fill_normal(2), bias.fill_normal(0.1f);
  count.set(0, 0, live);
  start<S>({logits.device<float>(), bias.device(), count.device<int32_t>(), ids.device<int32_t>(), weights.device<float>()});
  ids.fetch();
  std::vector<int> order(c.experts);
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int r = 0; r < live; ++r) {
    auto score = [&](int e) { return sigmoid(logits.at(r, e)) + bias.at(0, e); };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return score(a) > score(b); });
    std::vector<int> seen;
    for (int i = 0; i < c.top_k; ++i) {
      int id = (int)ids.at(r, i);
      if (id < 0 || id >= c.experts || std::count(seen.begin(), seen.end(), id))
        return fail("row " + std::to_string(r) + " has the id " + std::to_string(id) + " out of range or twice");
      seen.push_back(id);
      if (ties ? id != order[i] : std::abs(score(id) - score(order[i])) > 1e-6)
        return fail("row " + std::to_string(r) + " has expert " + std::to_string(id) + " at place " + std::to_string(i) +
                    ", expected " + std::to_string(order[i]));
    }
  }
  expect_close(ids, live, [&](int64_t r, int64_t i) { return ids.at(r, i); }, 0, "ids"); // looks for writes outside
  expect_close(
      weights, live,
      [&](int64_t r, int64_t i) {
        double total = 0;
        for (int j = 0; j < c.top_k; ++j)
          total += sigmoid(logits.at(r, (int)ids.at(r, j)));
        return sigmoid(logits.at(r, (int)ids.at(r, i))) * c.scale / (c.renormalize ? total : 1);
      },
      1e-5, "weights");
}
struct k3 {
  static constexpr Config config{.rows = 70, .experts = 896, .top_k = 16, .scale = 2.5f, .ld_logits = 896};
};
struct small {
  static constexpr Config config{
      .rows = 9, .experts = 20, .top_k = 6, .renormalize = 0, .ld_logits = 23, .bias_type = DType::bf16};
};
struct many {
  static constexpr Config config{.rows = 9, .experts = 100, .top_k = 40, .ld_logits = 100};
};
} // namespace route_test
K31_CUDA_TEST("moe.route") {
  using namespace route_test;
  route<k3>(67, false), route<k3>(70, true), route<small>(8, false), route<small>(9, true), route<many>(9, false);
}
K31_CUDA_TEST("moe.route.nan") {
  using namespace route_test;
  Tensor logits(DType::f32, k3::config.rows, 896), bias(DType::f32, 1, 896), count(DType::i32, 1, 1),
      ids(DType::i32, k3::config.rows, 16), weights(DType::f32, k3::config.rows, 16);
  logits.fill([] { return NAN; }), bias.fill([] { return 0.0; }), count.set(0, 0, 3); // nothing but NaN: experts 0 to 15
  start<k3>({logits.device<float>(), bias.device(), count.device<int32_t>(), ids.device<int32_t>(), weights.device<float>()});
  expect_close(ids, 3, [](int64_t, int64_t i) { return (double)i; }, 0, "ids");
  weights.fetch();
  if (!std::isnan(weights.at(0, 0)))
    fail("a NaN logit left no NaN in the weights");
}

namespace permute_test {
K31_CUDA_KERNEL(permute)
using namespace k31::kernels::permute;
template <Config c> void permute(int live, int low, int high) {
  Tensor x(c.type, c.rows, c.cols, c.ld_x), ids(DType::i32, c.rows, c.top_k), count(DType::i32, 1, 1),
      out(c.type, c.rows * c.top_k, c.cols), offsets(DType::i32, 1, c.experts + 1), slot(DType::i32, c.rows, c.top_k);
  x.fill_normal(), count.set(0, 0, live);
  ids.fill([=] { return uniform_int(low, high); });
  start<c>({x.device(), ids.device<int32_t>(), count.device<int32_t>(), out.device(), offsets.device<int32_t>(),
            slot.device<int32_t>()});
  std::vector<int> start_of(c.experts + 1), source;
  std::vector<std::vector<int>> want(live, std::vector<int>(c.top_k, -1));
  for (int e = 0; e < c.experts; ++e) {
    start_of[e] = (int)source.size();
    for (int r = 0; r < live; ++r)
      for (int i = 0; i < c.top_k; ++i)
        if (ids.at(r, i) == c.first + e)
          want[r][i] = (int)source.size(), source.push_back(r);
  }
  start_of[c.experts] = (int)source.size();
  expect_close(offsets, 1, [&](int64_t, int64_t e) { return (double)start_of[e]; }, 0, "offsets");
  expect_close(slot, live, [&](int64_t r, int64_t i) { return (double)want[r][i]; }, 0, "slot");
  expect_close(out, (int64_t)source.size(), [&](int64_t r, int64_t col) { return x.at(source[r], col); }, 0);
}
constexpr Config part{.rows = 300, .cols = 40, .top_k = 16, .first = 100, .experts = 112, .ld_x = 48};
constexpr Config whole{.rows = 33, .cols = 7, .top_k = 3, .experts = 10, .ld_x = 7, .type = DType::f32};
constexpr Config large{.rows = 700, .cols = 8, .top_k = 16, .experts = 896, .ld_x = 8};
constexpr Config crowded{.rows = 4096, .cols = 8, .top_k = 16, .experts = 4, .ld_x = 8};
} // namespace permute_test
K31_CUDA_TEST("moe.permute") {
  using namespace permute_test;
  permute<part>(291, 0, 895), permute<whole>(31, 0, 9), permute<large>(700, 0, 895), permute<crowded>(4000, 0, 5),
      permute<part>(0, 0, 9), permute<whole>(1, 3, 3);
}
K31_CUDA_TEST("moe.permute.time") {
  if (!timing())
    return;
  using namespace permute_test;
  constexpr Config c{.rows = 4096, .cols = 3584, .top_k = 16, .experts = 112, .ld_x = 3584};
  Tensor x(DType::bf16, c.rows, c.cols), ids(DType::i32, c.rows, 16), count(DType::i32, 1, 1),
      out(DType::bf16, c.rows * 16, c.cols), offsets(DType::i32, 1, 113), slot(DType::i32, c.rows, 16);
  x.fill_fast(), ids.fill([] { return uniform_int(0, 895); });
  Args args{x.device(),   ids.device<int32_t>(),     count.device<int32_t>(),
            out.device(), offsets.device<int32_t>(), slot.device<int32_t>()};
  for (int rows : {1, 64, 4096}) {
    count.set(0, 0, rows);
    args.live = count.device<int32_t>();
    report("permute " + std::to_string(rows) + " x 16, an eighth here", time_us([&](int) { start<c>(args); }),
           2.0 * rows * 2 * 2 * 3584);
  }
}
