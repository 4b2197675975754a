// moe.route, moe.permute and moe.combine, of the rows of one rank and of several.
#include "codegen/kernels/moe/combine.cuh"
#include "codegen/kernels/moe/permute.cuh"
#include "codegen/kernels/moe/route.cuh"
#include "test/kernels/cuda/runner.h"
#include <algorithm>
#include <numeric>

// For the launch code: see runner.h.
using _ZN3k317kernels7combine6ConfigE = k31::kernels::combine::Config;
using _ZN3k317kernels7RowTileE = k31::kernels::RowTile;
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

// Live rows of several ranks: each rank's stand at the front of its part.
struct Live {
  std::vector<int> counts, rows;
  Live(const std::vector<int> &counts, int capacity) : counts(counts) {
    for (size_t g = 0; g < counts.size(); ++g)
      for (int r = 0; r < counts[g]; ++r)
        rows.push_back((int)g * capacity + r);
  }
  void store(Tensor &t) const {
    for (size_t g = 0; g < counts.size(); ++g)
      t.set(0, (int64_t)g, counts[g]);
  }
};

namespace permute_test {
K31_CUDA_KERNEL(permute)
using namespace k31::kernels::permute;
// Experts of coordinate `rank` when it is not negative.
template <Config c> void permute(const Live &live, int rank, int low, int high) {
  Tensor x(c.type, c.rows, c.cols, c.ld_x), ids(DType::i32, c.rows, c.top_k), count(DType::i32, 1, c.groups),
      coordinate(DType::i32, 1, 1), out(c.type, c.rows * c.top_k, c.cols), offsets(DType::i32, 1, c.experts + 1),
      slot(DType::i32, c.rows, c.top_k);
  x.fill_normal(), live.store(count), coordinate.set(0, 0, rank);
  ids.fill([=] { return uniform_int(low, high); });
  Args args{x.device(), ids.device<int32_t>(), count.device<int32_t>(), {}};
  void **next = args.tail;
  if (c.ranked)
    *next++ = coordinate.device();
  *next++ = out.device(), *next++ = offsets.device(), *next++ = slot.device();
  start<c>(args);
  const int first = c.ranked ? rank * c.experts : c.first;
  std::vector<int> begin(c.experts + 1), source;
  std::vector<std::vector<int>> want(c.rows, std::vector<int>(c.top_k, -1));
  for (int e = 0; e < c.experts; ++e) {
    begin[e] = (int)source.size();
    for (int r : live.rows)
      for (int i = 0; i < c.top_k; ++i)
        if (ids.at(r, i) == first + e)
          want[r][i] = (int)source.size(), source.push_back(r);
  }
  begin[c.experts] = (int)source.size();
  expect_close(offsets, 1, [&](int64_t, int64_t e) { return (double)begin[e]; }, 0, "offsets");
  expect_close(out, (int64_t)source.size(), [&](int64_t r, int64_t col) { return x.at(source[r], col); }, 0);
  slot.fetch();
  std::vector<bool> alive(c.rows);
  for (int r : live.rows)
    alive[r] = true;
  for (int r = 0; r < c.rows; ++r) // poison is -1 too: a dead row's slots must not name a place either
    for (int i = 0; i < c.top_k; ++i)
      if (slot.at(r, i) != (alive[r] ? want[r][i] : -1))
        return fail("slot of row " + std::to_string(r) + ", choice " + std::to_string(i) + " is " +
                    std::to_string(slot.at(r, i)));
}
} // namespace permute_test
K31_CUDA_TEST("moe.permute") {
  using namespace permute_test;
  constexpr Config part{.rows = 300, .cols = 40, .top_k = 16, .first = 100, .experts = 112, .ld_x = 48};
  constexpr Config whole{.rows = 33, .cols = 7, .top_k = 3, .experts = 10, .ld_x = 7, .type = DType::f32};
  constexpr Config large{.rows = 700, .cols = 8, .top_k = 16, .experts = 896, .ld_x = 8};
  constexpr Config crowded{.rows = 4096, .cols = 8, .top_k = 16, .experts = 4, .ld_x = 8};
  permute<part>({{291}, 300}, -1, 0, 895), permute<part>({{0}, 300}, -1, 0, 9);
  permute<whole>({{31}, 33}, -1, 0, 9), permute<whole>({{1}, 33}, -1, 3, 3);
  permute<large>({{700}, 700}, -1, 0, 895), permute<crowded>({{4000}, 4096}, -1, 0, 5);
}
K31_CUDA_TEST("moe.permute.ranks") {
  using namespace permute_test;
  constexpr Config ranked{.rows = 300, .cols = 40, .top_k = 16, .experts = 112, .ld_x = 48, .ranked = 1};
  for (int rank : {0, 3, 7})
    permute<ranked>({{291}, 300}, rank, 0, 895);
  permute<ranked>({{300}, 300}, 8, 0, 895); // none of the experts lives here
  constexpr Config grouped{
      .rows = 256, .cols = 24, .top_k = 4, .first = 6, .experts = 10, .ld_x = 24, .groups = 4, .capacity = 64};
  permute<grouped>({{64, 0, 17, 1}, 64}, -1, 0, 20);
  permute<grouped>({{64, 64, 64, 64}, 64}, -1, 6, 15);
  permute<grouped>({{0, 0, 0, 0}, 64}, -1, 6, 15);
  constexpr Config both{
      .rows = 90, .cols = 5, .top_k = 3, .experts = 7, .ld_x = 9, .type = DType::f32, .ranked = 1, .groups = 3, .capacity = 30};
  for (int rank : {0, 1, 2}) // of 20 experts the third rank holds six and a place
    permute<both>({{30, 11, 0}, 30}, rank, 0, 19);
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

namespace combine_test {
K31_CUDA_KERNEL(combine)
using namespace k31::kernels::combine;
template <Config c> void combine(const Live &live) {
  Tensor x(c.x_type, c.rows * c.top_k, c.cols, c.ld_x), weights(DType::f32, c.rows, c.top_k), slot(DType::i32, c.rows, c.top_k),
      count(DType::i32, 1, c.groups), out(c.out_type, c.rows, c.cols, c.ld_out);
  x.fill_normal(), weights.fill_normal(), live.store(count);
  slot.fill([] { return uniform_int(0, 3) ? uniform_int(0, c.rows * c.top_k - 1) : -1; });
  for (int i = 0; i < c.top_k; ++i)
    slot.set(1, i, -1); // a token without any expert here
  Args args{x.device(), {}};
  void **next = args.tail;
  if (c.weighted)
    *next++ = weights.device();
  *next++ = slot.device(), *next++ = count.device(), *next++ = out.device();
  start<c>(args);
  out.fetch();
  std::vector<bool> alive(c.rows);
  for (int r : live.rows)
    alive[r] = true;
  for (int r = 0; r < c.rows; ++r)
    for (int col = 0; col < c.cols; ++col) {
      double want = 0;
      for (int i = 0; i < c.top_k; ++i)
        if (slot.at(r, i) >= 0)
          want += (c.weighted ? weights.at(r, i) : 1) * x.at((int64_t)slot.at(r, i), col);
      const double got = out.at(r, col), most = 1e-5 + (c.out_type == DType::bf16 ? std::abs(want) / 256 : 0);
      if (alive[r] ? !(std::abs(got - want) <= most) : !std::isnan(got))
        return fail("row " + std::to_string(r) + ", column " + std::to_string(col) + " is " + std::to_string(got));
    }
  if (!out.untouched_outside(c.rows))
    fail("wrote outside its columns");
}
} // namespace combine_test
K31_CUDA_TEST("moe.combine") {
  using namespace combine_test;
  constexpr Config k3{.rows = 70, .cols = 3584, .top_k = 16, .ld_x = 3584, .ld_out = 3584};
  constexpr Config tail{.rows = 20, .cols = 1096, .top_k = 16, .ld_x = 1096, .ld_out = 1104};
  constexpr Config odd{
      .rows = 20, .cols = 33, .top_k = 3, .ld_x = 35, .ld_out = 33, .x_type = DType::f32, .out_type = DType::f32};
  combine<k3>({{67}, 70}), combine<k3>({{0}, 70}), combine<tail>({{18}, 20}), combine<odd>({{20}, 20});
}
K31_CUDA_TEST("moe.combine.unweighted") {
  using namespace combine_test;
  constexpr Config sums{.rows = 20, .cols = 1096, .top_k = 16, .ld_x = 1096, .ld_out = 1096, .weighted = 0};
  constexpr Config odd{
      .rows = 20, .cols = 33, .top_k = 3, .ld_x = 33, .ld_out = 33, .x_type = DType::f32, .out_type = DType::f32, .weighted = 0};
  constexpr Config grouped{
      .rows = 96, .cols = 40, .top_k = 2, .ld_x = 40, .ld_out = 40, .groups = 3, .capacity = 32, .weighted = 0};
  combine<sums>({{18}, 20}), combine<odd>({{20}, 20}), combine<grouped>({{32, 0, 9}, 32});
}
K31_CUDA_TEST("moe.combine.ranks") {
  using namespace combine_test;
  constexpr Config grouped{.rows = 96,
                           .cols = 41,
                           .top_k = 5,
                           .ld_x = 43,
                           .ld_out = 48,
                           .x_type = DType::f32,
                           .out_type = DType::f32,
                           .groups = 3,
                           .capacity = 32};
  combine<grouped>({{32, 0, 9}, 32});
  constexpr Config wide{.rows = 256, .cols = 512, .top_k = 2, .ld_x = 512, .ld_out = 512, .groups = 8, .capacity = 32};
  combine<wide>({{1, 32, 0, 7, 31, 32, 2, 0}, 32});
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
