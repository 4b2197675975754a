#include "codegen/kernels/moe/route.h"
#include "test/kernels/common/fixture.h"
#include "test/kernels/common/tensor.h"
#include <algorithm>
#include <numeric>

using namespace k31::kernels;
using namespace k31::test;
using route::Args, route::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Routed {
  Tensor ids, weights;
};
Routed run(Tensor &logits, Tensor &bias, int top_k, bool renormalize, float scale, int32_t live, uint32_t tasks) {
  Routed out{Tensor(DType::i32, logits.rows(), top_k), Tensor(DType::f32, logits.rows(), top_k)};
  k31_config = {(int)logits.rows(), (int)logits.cols(), top_k, renormalize, scale, (int)logits.ld(), bias.type()};
  Args args{logits.as<float>(), bias.data(), &live, out.ids.as<int32_t>(), out.weights.as<float>()};
  launch(k31_entry, args, tasks);
  return out;
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void check(Tensor &logits, Tensor &bias, int top_k, bool renormalize, float scale, int32_t live, uint32_t tasks) {
  SCOPED_TRACE(::testing::Message() << "experts " << logits.cols() << " top_k " << top_k << " tasks " << tasks);
  Routed got = run(logits, bias, top_k, renormalize, scale, live, tasks);
  const int experts = (int)logits.cols();
  std::vector<std::vector<int>> order(live, std::vector<int>(experts));
  for (int r = 0; r < live; ++r) {
    std::iota(order[r].begin(), order[r].end(), 0);
    auto biased = [&](int e) { return sigmoid(logits.at(r, e)) + bias.at(0, e); };
    std::sort(order[r].begin(), order[r].end(),
              [&](int a, int b) { return biased(a) > biased(b) || (biased(a) == biased(b) && a < b); });
  }
  expect_close(got.ids, live, [&](int64_t r, int64_t i) { return order[r][i]; }, 0, "ids");
  expect_close(
      got.weights, live,
      [&](int64_t r, int64_t i) {
        double total = 1e-20;
        for (int j = 0; j < top_k; ++j)
          total += sigmoid(logits.at(r, order[r][j]));
        return sigmoid(logits.at(r, order[r][i])) / (renormalize ? total : 1) * scale;
      },
      1e-6, "weights");
}

TEST(Route, RandomLogits) {
  for (int experts : {8, 23, 896})
    for (int top_k : {1, 2, 8})
      for (bool renormalize : {false, true})
        for (DType bias_type : {DType::f32, DType::bf16})
          for (uint32_t tasks : {1u, 2u, 9u}) {
            Tensor logits(DType::f32, 6, experts, experts + 5), bias(bias_type, 1, experts);
            logits.fill([] { return (float)uniform_int(-4000, 4000) / 1000; }, 5); // coarse: fp32 and fp64 order alike
            bias.fill([] { return (float)uniform_int(-8, 8) / 64; });
            // Distinct biased scores in fp32: near ties are made exact ones by the test of ties below, here they are pushed
            // apart.
            for (int r = 0; r < 5; ++r)
              for (int e = 0; e < experts; ++e)
                logits.set(r, e, logits.at(r, e) + (float)e / experts / 1000);
            check(logits, bias, top_k, renormalize, 2.5f, 5, tasks);
          }
}

TEST(Route, TiesGoToTheLowerExpert) {
  for (int experts : {8, 40}) {
    Tensor logits(DType::f32, 4, experts), bias(DType::f32, 1, experts);
    logits.fill([] { return (float)uniform_int(0, 1); });
    bias.fill([] { return 0.0f; });
    for (int top_k : {1, 5, 8})
      check(logits, bias, top_k, true, 1, 4, 2);
  }
}

TEST(Route, NaNKeepsTheIdsDistinctAndShowsInTheWeights) {
  const int experts = 20, top_k = 6;
  Tensor logits(DType::f32, 2, experts), bias(DType::f32, 1, experts);
  logits.fill_normal(), bias.fill([] { return 0.0f; });
  for (int e = 0; e < experts; ++e)
    logits.set(1, e, NAN);
  Routed got = run(logits, bias, top_k, true, 1, 2, 1);
  for (int i = 0; i < top_k; ++i) {
    EXPECT_EQ(got.ids.at(1, i), i);
    EXPECT_TRUE(std::isnan(got.weights.at(1, i)));
    EXPECT_FALSE(std::isnan(got.weights.at(0, i)));
  }
}

TEST(RouteFixture, Router) {
  Fixture f("third-party/ops/router.json");
  int rows = (int)f.shape("in")[0], hidden = (int)f.shape("in")[1], experts = f.value<int>("n_experts");
  std::vector<float> x = f.data("in"), gate = f.data("gate_weight"), ids = f.data("topk_idx"), weights = f.data("topk_weight");
  Tensor logits(DType::f32, rows, experts), bias(DType::f32, 1, experts);
  for (int r = 0; r < rows; ++r)
    for (int e = 0; e < experts; ++e) {
      double sum = 0;
      for (int k = 0; k < hidden; ++k)
        sum += (double)x[r * hidden + k] * gate[e * hidden + k];
      logits.set(r, e, (float)sum);
    }
  bias.fill_from(f.data("bias"));
  int top_k = f.value<int>("top_k");
  Routed got = run(logits, bias, top_k, true, 1, rows, 3);
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < top_k; ++i) { // the fixture's order inside a row is not defined
      auto begin = ids.begin() + r * top_k, at = std::find(begin, begin + top_k, got.ids.at(r, i));
      ASSERT_NE(at, begin + top_k) << "row " << r << " chose expert " << got.ids.at(r, i);
      EXPECT_NEAR(got.weights.at(r, i), weights[at - ids.begin()], 1e-5);
    }
}

} // namespace
