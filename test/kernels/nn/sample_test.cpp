#include "codegen/kernels/nn/sample.h"
#include "test/kernels/common/tensor.h"
#include <algorithm>
#include <numeric>

using namespace k31::kernels;
using namespace k31::test;
using sample::Args, sample::Config, sample::Params;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Batch {
  Tensor logits;
  std::vector<Params> params;
  std::vector<uint8_t> mask; // empty: not masked
  std::vector<float> bias;
};

std::vector<int32_t> run(Batch &batch, int32_t live, uint32_t tasks) {
  const int rows = (int)batch.logits.rows(), vocab = (int)batch.logits.cols();
  k31_config = {rows, vocab, !batch.mask.empty(), (int)batch.logits.ld()};
  std::vector<std::pair<float, int32_t>> workspace((size_t)tasks * vocab);
  std::vector<int32_t> out(rows, -77);
  Args args{batch.logits.as<float>(), batch.params.data(), {}};
  int at = 0;
  if (!batch.mask.empty())
    args.tail[at++] = batch.mask.data(), args.tail[at++] = batch.bias.data();
  args.tail[at++] = &live, args.tail[at++] = out.data(), args.tail[at] = workspace.data();
  launch(k31_entry, args, tasks);
  for (int r = live; r < rows; ++r)
    EXPECT_EQ(out[r], -77) << "a dead row was written";
  return out;
}

// The documented draw, in fp64 and with a full sort.
int reference(const Batch &batch, int64_t r) {
  const int vocab = (int)batch.logits.cols();
  const Params &p = batch.params[r];
  std::vector<double> score(vocab);
  for (int i = 0; i < vocab; ++i) {
    score[i] = batch.logits.at(r, i);
    if (!batch.mask.empty())
      score[i] = batch.mask[r * vocab + i] ? (float)score[i] + batch.bias[r * vocab + i] : -INFINITY;
  }
  double highest = *std::max_element(score.begin(), score.end());
  std::vector<double> w(vocab);
  for (int i = 0; i < vocab; ++i)
    w[i] = std::exp((score[i] - highest) / p.temperature);
  std::vector<int> order(vocab);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return w[a] > w[b] || (w[a] == w[b] && a < b); });
  double total = std::accumulate(w.begin(), w.end(), 0.0), mass = 0, kept = 0, sum = 0;
  std::vector<char> keep(vocab);
  for (int i : order) {
    keep[i] = 1, mass += w[i], kept += w[i];
    if (p.top_p < 1 && mass >= p.top_p * total)
      break;
  }
  auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u, z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  const uint64_t step = 0x9e3779b97f4a7c15u;
  double u = (double)(mix(mix(p.seed + step) + step * (p.counter + 1)) >> 11) / 9007199254740992.0;
  for (int i = 0; i < vocab; ++i)
    if (keep[i] && (sum += w[i]) > u * kept)
      return i;
  return -2;
}

TEST(Sample, GreedyTakesTheLowestOfEqualMaxima) {
  for (int vocab : {1, 5, 16, 17, 250}) {
    Batch batch{Tensor(DType::f32, 6, vocab, vocab + 3), std::vector<Params>(6, {0, 1, 0, 0}), {}, {}};
    batch.logits.fill([] { return (float)uniform_int(-3, 3); }, 5); // many ties
    for (uint32_t tasks : {1u, 2u, 7u}) {
      std::vector<int32_t> got = run(batch, 5, tasks);
      for (int r = 0; r < 5; ++r) {
        int best = 0;
        for (int i = 1; i < vocab; ++i)
          if (batch.logits.at(r, i) > batch.logits.at(r, best))
            best = i;
        EXPECT_EQ(got[r], best) << "vocab " << vocab << " row " << r;
      }
    }
  }
}

TEST(Sample, NonFiniteLogitGivesMinusOne) {
  for (float temperature : {0.0f, 1.0f})
    for (float bad : {NAN, INFINITY, -INFINITY})
      for (int at : {0, 20, 36}) {
        Batch batch{Tensor(DType::f32, 2, 37), std::vector<Params>(2, {temperature, 0.9f, 1, 2}), {}, {}};
        batch.logits.fill_normal();
        batch.logits.set(1, at, bad);
        std::vector<int32_t> got = run(batch, 2, 1);
        EXPECT_GE(got[0], 0);
        EXPECT_EQ(got[1], -1) << bad << " at " << at;
      }
}

TEST(Sample, DrawsAsDocumented) {
  for (int vocab : {3, 40, 1000})
    for (float top_p : {0.0f, 0.3f, 0.9f, 0.95f, 1.0f})
      for (float temperature : {0.3f, 1.0f, 2.5f}) {
        const int rows = 24;
        Batch batch{Tensor(DType::f32, rows, vocab), {}, {}, {}};
        batch.logits.fill_normal(2);
        for (int r = 0; r < rows; ++r)
          batch.params.push_back({temperature, top_p, (uint64_t)r / 8, (uint64_t)r % 8});
        std::vector<int32_t> got = run(batch, rows, 5);
        int different = 0; // fp32 exponentials may move a token over an edge once in a while
        for (int r = 0; r < rows; ++r)
          different += got[r] != reference(batch, r);
        EXPECT_LE(different, 1) << "vocab " << vocab << " top_p " << top_p << " temperature " << temperature;
      }
}

TEST(Sample, TiesKeepTheLowestIds) { // 8 equal tokens, top_p just above a half keeps ids 0..4
  const int rows = 200;
  Batch batch{Tensor(DType::f32, rows, 8), {}, {}, {}};
  batch.logits.fill([] { return 1.5f; });
  for (int r = 0; r < rows; ++r)
    batch.params.push_back({1, 0.51f, 7, (uint64_t)r});
  std::vector<int32_t> got = run(batch, rows, 3);
  EXPECT_EQ(*std::max_element(got.begin(), got.end()), 4);
  EXPECT_EQ(*std::min_element(got.begin(), got.end()), 0);
}

TEST(Sample, FrequenciesFollowTheProbabilities) {
  const int rows = 4000;
  const double p[] = {0.5, 0.25, 0.15, 0.1};
  Batch batch{Tensor(DType::f32, rows, 4), {}, {}, {}};
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < 4; ++i)
      batch.logits.set(r, i, (float)std::log(p[i]));
    batch.params.push_back({1, 1, 42, (uint64_t)r});
  }
  std::vector<int32_t> got = run(batch, rows, 2);
  for (int i = 0; i < 4; ++i) // five standard deviations
    EXPECT_NEAR(std::count(got.begin(), got.end(), i) / (double)rows, p[i], 5 * std::sqrt(p[i] * (1 - p[i]) / rows));
}

TEST(Sample, DependsOnSeedAndCounterAlone) {
  const int vocab = 300, rows = 6;
  Batch batch{Tensor(DType::f32, rows, vocab), {}, {}, {}};
  batch.logits.fill_normal();
  for (int r = 0; r < rows; ++r)
    batch.params.push_back({1, 0.9f, 3, (uint64_t)r});
  std::vector<int32_t> together = run(batch, rows, 4);
  for (int r = 0; r < rows; ++r) {
    Batch alone{Tensor(DType::f32, 1, vocab), {batch.params[r]}, {}, {}};
    for (int i = 0; i < vocab; ++i)
      alone.logits.set(0, i, batch.logits.at(r, i));
    EXPECT_EQ(run(alone, 1, 1)[0], together[r]);
  }
}

TEST(Sample, MaskAndBias) {
  for (float temperature : {0.0f, 1.0f}) {
    const int rows = 40, vocab = 21;
    Batch batch{
        Tensor(DType::f32, rows, vocab, vocab + 1), {}, std::vector<uint8_t>(rows * vocab), std::vector<float>(rows * vocab)};
    batch.logits.fill_normal();
    for (auto &m : batch.mask)
      m = uniform_int(0, 2) == 0;
    for (auto &b : batch.bias)
      b = normal(2);
    for (int i = 0; i < vocab; ++i)
      batch.mask[i] = 0, batch.mask[vocab + i] = 1;                // row 0: nothing allowed
    batch.bias[vocab + 4] = 50, batch.bias[vocab + 5] = -INFINITY; // row 1: certainly 4
    for (int r = 0; r < rows; ++r)
      batch.params.push_back({temperature, 0.9f, 5, (uint64_t)r});
    for (int r = 2; r < rows; ++r)
      batch.mask[r * vocab + 20] = 1;
    std::vector<int32_t> got = run(batch, rows, 3);
    EXPECT_EQ(got[0], -1);
    EXPECT_EQ(got[1], 4);
    for (int r = 2; r < rows; ++r) {
      ASSERT_GE(got[r], 0);
      EXPECT_TRUE(batch.mask[r * vocab + got[r]]) << "row " << r << " chose the excluded token " << got[r];
      if (temperature > 0) {
        EXPECT_EQ(got[r], reference(batch, r)) << "row " << r;
        continue;
      }
      for (int i = 0; i < vocab; ++i)
        if (batch.mask[r * vocab + i])
          EXPECT_LE(batch.logits.at(r, i) + batch.bias[r * vocab + i],
                    batch.logits.at(r, got[r]) + batch.bias[r * vocab + got[r]]);
    }
  }
}

} // namespace
