// nn.sample: greedy, top-p and full draws against fp64, ties, masks, rows that have no answer.
#include "codegen/kernels/nn/sample.cuh"
#include "test/kernels/cuda/runner.h"
#include <algorithm>
#include <numeric>

// For the launch code: see runner.h.
using _ZN3k317kernels6sample6ConfigE = k31::kernels::sample::Config;
using _ZN3k317kernels6sample4TileE = k31::kernels::sample::Tile;

K31_CUDA_KERNEL(sample)

namespace {

using namespace k31::test;
using namespace k31::kernels::sample;

double random_number(uint64_t seed, uint64_t counter) { // nn/sample.h: splitmix64
  auto mixed = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u, z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  const uint64_t step = 0x9e3779b97f4a7c15u;
  return (double)(mixed(mixed(seed + step) + step * (counter + 1)) >> 11) * 0x1p-53;
}

// Ids that a row may answer with: one, or two when the draw falls within rounding of a border.
std::vector<int> answers(const std::vector<double> &scores, const Params &p) {
  int best = (int)(std::max_element(scores.begin(), scores.end()) - scores.begin());
  if (p.temperature == 0)
    return {best};
  std::vector<double> w(scores.size());
  double total = 0, mass = 0, kept = 0, sum = 0;
  for (size_t i = 0; i < w.size(); ++i)
    total += w[i] = std::exp((scores[i] - scores[best]) / p.temperature);
  std::vector<int> order(w.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return w[a] > w[b]; });
  std::vector<bool> in(w.size(), p.top_p >= 1);
  for (size_t i = 0; i < order.size() && p.top_p < 1 && mass < p.top_p * total * (1 - 1e-12); ++i)
    in[order[i]] = true, mass += w[order[i]];
  for (size_t i = 0; i < w.size(); ++i)
    kept += in[i] ? w[i] : 0;
  double stop = random_number(p.seed, p.counter) * kept;
  std::vector<int> found;
  for (size_t i = 0; i < w.size(); ++i)
    if (in[i]) {
      if (stop >= sum - 1e-5 * kept && stop < sum + w[i] + 1e-5 * kept)
        found.push_back((int)i);
      sum += w[i];
    }
  return found;
}

template <Config c, class Fill> void sampled(int live, const std::vector<Params> &params, Fill fill) {
  Tensor logits(DType::f32, c.rows, c.vocab, c.ld_logits), mask(DType::u8, c.rows, c.vocab), bias(DType::f32, c.rows, c.vocab),
      count(DType::i32, 1, 1), out(DType::i32, 1, c.rows);
  logits.fill(fill), count.set(0, 0, live), bias.fill_normal(), mask.fill([] { return uniform_int(0, 3) > 0; });
  void *device = nullptr;
  check(cudaMalloc(&device, params.size() * sizeof(Params)), "parameters");
  check(cudaMemcpy(device, params.data(), params.size() * sizeof(Params), cudaMemcpyHostToDevice), "parameters");
  Args args{logits.device<float>(), (const Params *)device, {}};
  int at = 0;
  if (c.masked)
    args.tail[at++] = mask.device(), args.tail[at++] = bias.device();
  args.tail[at++] = count.device(), args.tail[at++] = out.device();
  start<c>(args);
  out.fetch();
  cudaFree(device);
  int close = 0;
  for (int r = 0; r < c.rows; ++r) {
    int id = (int)out.at(0, r);
    if (r >= live) {
      if (id != -1) // poison
        fail("a dead row was written");
      continue;
    }
    std::vector<double> scores(c.vocab);
    for (int i = 0; i < c.vocab; ++i)
      scores[i] = !c.masked ? logits.at(r, i) : mask.at(r, i) ? (double)(float)(logits.at(r, i) + bias.at(r, i)) : -INFINITY;
    std::vector<int> want = answers(scores, params[r]);
    close += want.size() > 1;
    if (!std::count(want.begin(), want.end(), id))
      fail("row " + std::to_string(r) + " gave id " + std::to_string(id) + ", expected " +
           (want.empty() ? "none" : std::to_string(want[0])));
  }
  if (close > live / 4)
    fail("too many draws near a border: the test cannot fail");
}

std::vector<Params> draws(int rows, float temperature, float top_p) {
  std::vector<Params> params(rows);
  for (int r = 0; r < rows; ++r)
    params[r] = {temperature, top_p, (uint64_t)r * 77 + 5, (uint64_t)r * 3};
  return params;
}

constexpr Config plain{.rows = 24, .vocab = 5003, .ld_logits = 5010};
constexpr Config masked{.rows = 24, .vocab = 3001, .masked = 1, .ld_logits = 3001};
constexpr Config tiny{.rows = 24, .vocab = 7, .ld_logits = 7};

} // namespace

K31_CUDA_TEST("nn.sample.greedy") {
  sampled<plain>(22, draws(24, 0, 1), [] { return normal(3); });
  sampled<plain>(24, draws(24, 0, 1), [] { return (float)uniform_int(-3, 3); }); // ties: the lowest id
  sampled<masked>(24, draws(24, 0, 1), [] { return normal(3); });
}
K31_CUDA_TEST("nn.sample.top_p") {
  sampled<plain>(24, draws(24, 1, 0.9f), [] { return normal(4); });
  sampled<plain>(24, draws(24, 0.7f, 0.3f), [] { return normal(4); });
  sampled<masked>(23, draws(24, 1.3f, 0.8f), [] { return normal(4); });
  sampled<tiny>(24, draws(24, 1, 0.6f), [] { return (float)uniform_int(-1, 1); }); // ties at the limit
  sampled<tiny>(24, draws(24, 1, 0.5f), [] { return 1.0f; });
}
K31_CUDA_TEST("nn.sample.full") {
  sampled<plain>(24, draws(24, 0.8f, 1), [] { return normal(5); }), sampled<tiny>(24, draws(24, 1, 1), [] { return normal(1); });
}

K31_CUDA_TEST("nn.sample.no_answer") {
  Tensor logits(DType::f32, plain.rows, plain.vocab, plain.ld_logits), count(DType::i32, 1, 1), out(DType::i32, 1, plain.rows);
  logits.fill_normal(), count.set(0, 0, 4), out.fill([] { return 7.0; });
  logits.set(0, 4999, NAN), logits.set(1, 3, INFINITY), logits.set(2, 5, -INFINITY);
  std::vector<Params> params = draws(24, 1, 0.9f);
  void *device = nullptr;
  check(cudaMalloc(&device, params.size() * sizeof(Params)), "parameters");
  check(cudaMemcpy(device, params.data(), params.size() * sizeof(Params), cudaMemcpyHostToDevice), "parameters");
  start<plain>({logits.device<float>(), (const Params *)device, {count.device(), out.device()}});
  out.fetch();
  cudaFree(device);
  for (int r = 0; r < 3; ++r)
    if (out.at(0, r) != -1)
      fail("a row with a non-finite logit gave id " + std::to_string((int)out.at(0, r)));
  if (out.at(0, 3) < 0 || out.at(0, 4) != 7)
    fail("a good row failed, or a dead one was written");
}

K31_CUDA_TEST("nn.sample.time") {
  if (!timing())
    return;
  constexpr Config c{.rows = 64, .vocab = 163840, .ld_logits = 163840};
  Tensor logits(DType::f32, c.rows, c.vocab), count(DType::i32, 1, 1), out(DType::i32, 1, c.rows);
  logits.fill_fast(3), count.set(0, 0, c.rows);
  for (float temperature : {0.0f, 1.0f}) {
    std::vector<Params> params = draws(64, temperature, 0.95f);
    void *device = nullptr;
    check(cudaMalloc(&device, params.size() * sizeof(Params)), "parameters");
    check(cudaMemcpy(device, params.data(), params.size() * sizeof(Params), cudaMemcpyHostToDevice), "parameters");
    Args args{logits.device<float>(), (const Params *)device, {count.device(), out.device()}};
    report(temperature > 0 ? "sample 64 rows, top-p 0.95" : "sample 64 rows, greedy", time_us([&](int) { start<c>(args); }),
           4.0 * 64 * 163840);
    cudaFree(device);
  }
}
