// moe.route, moe.permute and moe.combine, of the rows of one rank and of several.
#include "codegen/kernels/moe/combine.cuh"
#include "codegen/kernels/moe/permute.cuh"
#include "codegen/kernels/moe/route.cuh"
#include "test/kernels/cuda/runner.h"
#include <algorithm>
#include <limits>
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
template <class S, class T = Chosen<S>> void route(int live, bool ties) {
  constexpr Config c = S::config;
  Tensor logits(DType::f32, c.rows, c.experts, c.ld_logits), bias(c.bias_type, 1, c.experts), count(DType::i32, 1, 1),
      ids(DType::i32, c.rows, c.top_k), weights(DType::f32, c.rows, c.top_k);
  if (ties)
    logits.fill([] { return uniform_int(-2, 2); }), bias.fill([] { return 0.0; });
  else
    logits.fill_normal(2), bias.fill_normal(0.1f);
  count.set(0, 0, live);
  start<S, T>({logits.device<float>(), bias.device(), count.device<int32_t>(), ids.device<int32_t>(), weights.device<float>()});
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

// Both forms of the kernel, whatever the capacity.
struct by_warp {
  static constexpr Tile tile{.warps = 4};
};
template <int Warps> struct by_block {
  static constexpr Tile tile{.warps = Warps, .together = 1};
};
// Ids and weights of all rows.
template <class S, class T> std::vector<double> results(const Args &inputs, int live) {
  Tensor ids(DType::i32, S::config.rows, S::config.top_k), weights(DType::f32, S::config.rows, S::config.top_k);
  start<S, T>({inputs.logits, inputs.bias, inputs.live, ids.device<int32_t>(), weights.device<float>()});
  ids.fetch(), weights.fetch();
  std::vector<double> all;
  for (int r = 0; r < S::config.rows; ++r)
    for (int i = 0; i < S::config.top_k; ++i)
      all.push_back(ids.at(r, i)), all.push_back(std::isnan(weights.at(r, i)) ? -2 : weights.at(r, i));
  if (!ids.untouched_outside(live) || !weights.untouched_outside(live))
    fail("wrote outside of " + std::to_string(live) + " rows");
  return all;
}
// The same from both forms, bit for bit. `value` makes logits.
template <class S, class Block, class Value> void same(int live, Value value) {
  constexpr Config c = S::config;
  Tensor logits(DType::f32, c.rows, c.experts, c.ld_logits), bias(c.bias_type, 1, c.experts), count(DType::i32, 1, 1);
  logits.fill(value), bias.fill_normal(0.1f), count.set(0, 0, live);
  const Args inputs{logits.device<float>(), bias.device(), count.device<int32_t>(), nullptr, nullptr};
  const std::vector<double> by_warps = results<S, by_warp>(inputs, live), by_blocks = results<S, Block>(inputs, live);
  for (size_t i = 0; i < by_warps.size(); ++i)
    if (by_warps[i] != by_blocks[i])
      return fail("row " + std::to_string(i / 2 / c.top_k) + ", choice " + std::to_string(i / 2 % c.top_k) + " is " +
                  std::to_string(by_blocks[i]) + " by a block, " + std::to_string(by_warps[i]) + " by a warp");
}
template <class S, class Block> void forms() {
  for (int live : {0, 1, 8, 64, 264, 300})
    route<S, Block>(live, live % 3 == 0);
  route<S, by_warp>(300, false), route<S, by_warp>(64, true);
  same<S, Block>(300, [] { return normal(2); });
  same<S, Block>(64, [] { return uniform_int(0, 9) ? normal(60) : NAN; }); // sigmoids that are 0, subnormal or 1, and NaN
  same<S, Block>(8, [] { return (uniform_int(0, 1) ? 1 : -1) * std::numeric_limits<double>::infinity(); });
  same<S, Block>(8, [at = 0]() mutable { return at++ % S::config.experts * 0.01; }); // the best of all share few threads
}
template <int Experts, int TopK, int Renormalize, DType Bias> struct shape {
  static constexpr Config config{.rows = 300,
                                 .experts = Experts,
                                 .top_k = TopK,
                                 .renormalize = Renormalize,
                                 .scale = 2.827f,
                                 .ld_logits = Experts + 1,
                                 .bias_type = Bias};
};
} // namespace route_test
K31_CUDA_TEST("moe.route.forms") {
  using namespace route_test;
  forms<shape<896, 16, 1, DType::f32>, by_block<8>>(), forms<shape<900, 16, 0, DType::bf16>, by_block<8>>();
  forms<shape<56, 16, 0, DType::f32>, by_block<1>>(), forms<shape<60, 8, 1, DType::bf16>, by_block<4>>();
  forms<shape<100, 100, 1, DType::f32>, by_block<4>>(), forms<shape<40, 40, 0, DType::f32>, by_block<2>>();
}
K31_CUDA_TEST("moe.route.choice") { // of a form, by the capacity
  using namespace route_test;
  auto tile = [](int rows, int experts, int top_k) { return choose({.rows = rows, .experts = experts, .top_k = top_k}); };
  if (const Tile t = tile(264, 896, 16); !t.together || t.warps != 8)
    fail("264 rows of 896 experts are not taken by blocks of eight warps");
  if (tile(265, 896, 16).together || tile(8, 8192, 16).together || tile(8, 896, 300).together)
    fail("a block takes rows that are too many, or have too many experts or choices");
  if (const Tile t = tile(1, 20, 6); !t.together || t.warps != 1)
    fail("20 experts take more than a warp");
  if (tile(1, 100, 100).threads() < 100)
    fail("fewer threads than choices");
}
K31_CUDA_TEST("moe.route.time") {
  if (!timing())
    return;
  using namespace route_test;
  using k3_all = shape<896, 16, 1, DType::f32>;
  Tensor logits(DType::f32, 2048, 896, 897), bias(DType::f32, 1, 896), count(DType::i32, 1, 1), ids(DType::i32, 2048, 16),
      weights(DType::f32, 2048, 16);
  logits.fill_fast(), bias.fill_normal(0.1f);
  for (int rows : {1, 8, 64, 264}) {
    count.set(0, 0, rows);
    const Args args{logits.device<float>(), bias.device(), count.device<int32_t>(), ids.device<int32_t>(),
                    weights.device<float>()};
    const double bytes = rows * 4.0 * (896 + 32);
    report("route " + std::to_string(rows) + " x 896, a warp a row", time_us([&](int) { start<k3_all, by_warp>(args); }), bytes);
    report("route " + std::to_string(rows) + " x 896, a block a row", time_us([&](int) { start<k3_all, by_block<8>>(args); }),
           bytes);
  }
}
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
template <Config c, Tile t = choose(c)> void permute(const Live &live, int rank, int low, int high) {
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
  start<c, t>(args);
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
constexpr Tile many{.block = 512}, few{.block = 512, .few = 1};
template <Config c> void both_forms(const Live &live, int rank, int low, int high) {
  permute<c, many>(live, rank, low, high), permute<c, few>(live, rank, low, high);
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
  permute<ranked, few>({{256}, 300}, 7, 0, 895);
  constexpr Config grouped{
      .rows = 256, .cols = 24, .top_k = 4, .first = 6, .experts = 10, .ld_x = 24, .groups = 4, .capacity = 64};
  both_forms<grouped>({{64, 0, 17, 1}, 64}, -1, 0, 20);
  both_forms<grouped>({{64, 64, 64, 64}, 64}, -1, 6, 15);
  both_forms<grouped>({{0, 0, 0, 0}, 64}, -1, 6, 15);
  constexpr Config both{
      .rows = 90, .cols = 5, .top_k = 3, .experts = 7, .ld_x = 9, .type = DType::f32, .ranked = 1, .groups = 3, .capacity = 30};
  for (int rank : {0, 1, 2}) // of 20 experts the third rank holds six and a place
    both_forms<both>({{30, 11, 0}, 30}, rank, 0, 19);
}
K31_CUDA_TEST("moe.permute.few") {
  using namespace permute_test;
  static_assert(choose({.rows = 256, .top_k = 16, .experts = 896}).few &&
                !choose({.rows = 257, .top_k = 16, .experts = 896}).few &&
                !choose({.rows = 1, .top_k = 16, .experts = 1 << 20}).few);
  constexpr Config whole{.rows = 256, .cols = 40, .top_k = 16, .experts = 896, .ld_x = 43}, // rows of x start anywhere
      odd{.rows = 256, .cols = 40, .top_k = 16, .first = 3, .experts = 900, .ld_x = 40},
      wide{.rows = 70, .cols = 4360, .top_k = 3, .experts = 60, .ld_x = 4360}; // more than 16 vectors a lane
  for (int live : {0, 1, 8, 64, 255, 256})
    both_forms<whole>({{live}, 256}, -1, 0, 895), both_forms<odd>({{live}, 256}, -1, 0, 910);
  both_forms<whole>({{256}, 256}, -1, 895, 895), both_forms<wide>({{67}, 70}, -1, 0, 70);
  constexpr Config pair{
      .rows = 2, .cols = 3584, .top_k = 16, .experts = 56, .ld_x = 3584, .ranked = 1, .groups = 2, .capacity = 1};
  for (const std::vector<int> &live : std::vector<std::vector<int>>{{1, 1}, {1, 0}, {0, 1}, {0, 0}})
    both_forms<pair>({live, 1}, 3, 0, 895), both_forms<pair>({live, 1}, 3, 160, 230);
  constexpr Config node{
      .rows = 128, .cols = 72, .top_k = 16, .experts = 56, .ld_x = 72, .ranked = 1, .groups = 8, .capacity = 16};
  both_forms<node>({{8, 8, 0, 16, 3, 8, 8, 1}, 16}, 5, 0, 895),
      both_forms<node>({{16, 16, 16, 16, 16, 16, 16, 16}, 16}, 15, 840, 895);
}
K31_CUDA_TEST("moe.permute.time") {
  if (!timing())
    return;
  using namespace permute_test;
  constexpr Config c{.rows = 4096, .cols = 3584, .top_k = 16, .experts = 112, .ld_x = 3584};
  constexpr Config c1{.rows = 1, .cols = 3584, .top_k = 16, .experts = 112, .ld_x = 3584},
      c8{.rows = 8, .cols = 3584, .top_k = 16, .experts = 112, .ld_x = 3584},
      c64{.rows = 64, .cols = 3584, .top_k = 16, .experts = 112, .ld_x = 3584},
      c256{.rows = 256, .cols = 3584, .top_k = 16, .experts = 112, .ld_x = 3584};
  Tensor x(DType::bf16, c.rows, c.cols), ids(DType::i32, c.rows, 16), count(DType::i32, 1, 1),
      out(DType::bf16, c.rows * 16, c.cols), offsets(DType::i32, 1, 113), slot(DType::i32, c.rows, 16);
  x.fill_fast(), ids.fill([] { return uniform_int(0, 895); });
  Args args{x.device(),   ids.device<int32_t>(),     count.device<int32_t>(),
            out.device(), offsets.device<int32_t>(), slot.device<int32_t>()};
  auto time = [&](int rows, const char *form, auto &&launch) {
    count.set(0, 0, rows);
    args.live = count.device<int32_t>();
    report("permute " + std::to_string(rows) + " x 16, an eighth here" + form, time_us([&](int) { launch(); }),
           2.0 * rows * 2 * 2 * 3584);
  };
  time(1, "", [&] { start<c1, many>(args); }), time(1, ", few", [&] { start<c1, few>(args); });
  time(8, "", [&] { start<c8, many>(args); }), time(8, ", few", [&] { start<c8, few>(args); });
  time(64, "", [&] { start<c64, many>(args); }), time(64, ", few", [&] { start<c64, few>(args); });
  time(256, "", [&] { start<c256, many>(args); }), time(256, ", few", [&] { start<c256, few>(args); });
  time(4096, "", [&] { start<c>(args); });
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
