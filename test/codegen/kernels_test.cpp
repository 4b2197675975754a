// Whole kernels made in process from IR: fused, specialised, linked, loaded, and compared with plain loops.
#include "test/codegen/compile.h"
#include <chrono>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

namespace k31::test {
namespace {

// Numbers without a pattern, in (-scale, scale).
std::vector<float> numbers(size_t n, uint32_t seed, float scale = 1) {
  std::vector<float> v(n);
  for (float &x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = (static_cast<float>(seed >> 8) / (1 << 23) - 1) * scale;
  }
  return v;
}
std::vector<uint16_t> halves(const std::vector<float> &v) {
  std::vector<uint16_t> h(v.size());
  std::transform(v.begin(), v.end(), h.begin(), toBf16);
  return h;
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Three dead rows of ten; 40 columns end in half a vector.
constexpr int kRows = 5, kLive = 3;

void expectNear(const std::vector<float> &got, const std::vector<double> &expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "value " << i;
  for (size_t i = expected.size(); i < got.size(); ++i)
    ASSERT_EQ(got[i], -77) << "value " << i << " belongs to a dead row";
}

} // namespace

TEST(Kernels, RowWithSumsOfTwoDepths) {
  // Layer norm as it is written down: the variance is a sum that depends on the mean.
  Compiled compiled(R"(
    func.func @f(%live: tensor<1xi32>, %a: tensor<5x40xbf16>, %g: tensor<40xf32>) -> tensor<5x40xf32> {
      %r = nn.row ["layer_norm"] live %live (%a, %g) {
      ^bb0(%x: f32, %gain: f32):
        %n = arith.constant 0.025 : f32
        %eps = arith.constant 1.0e-5 : f32
        %s = nn.sum %x : f32
        %mean = arith.mulf %s, %n : f32
        %d = arith.subf %x, %mean : f32
        %dd = arith.mulf %d, %d : f32
        %v = nn.sum %dd : f32
        %var = arith.mulf %v, %n : f32
        %ve = arith.addf %var, %eps : f32
        %i = math.rsqrt %ve : f32
        %y = arith.mulf %d, %i : f32
        %z = arith.mulf %y, %gain : f32
        nn.yield %z : f32
      } : (tensor<1xi32>, tensor<5x40xbf16>, tensor<40xf32>) -> tensor<5x40xf32>
      return %r : tensor<5x40xf32>
    })");
  ASSERT_EQ(compiled.names(), "nn.row");
  int32_t live = kLive;
  auto a = halves(numbers(kRows * 40, 1, 3));
  auto gain = numbers(40, 2);
  std::vector<double> expected;
  for (int t = 0; t < kLive; ++t) {
    double mean = 0, var = 0;
    for (int c = 0; c < 40; ++c)
      mean += fromBf16(a[t * 40 + c]) / 40.0;
    for (int c = 0; c < 40; ++c)
      var += std::pow(fromBf16(a[t * 40 + c]) - mean, 2) / 40;
    for (int c = 0; c < 40; ++c)
      expected.push_back((fromBf16(a[t * 40 + c]) - mean) / std::sqrt(var + 1e-5) * gain[c]);
  }
  std::vector<float> out(kRows * 40);
  compiled.run(
      0, {&live, a.data(), gain.data(), out.data()}, [&] { std::fill(out.begin(), out.end(), -77); },
      [&] { expectNear(out, expected, 1e-5); });
}

TEST(Kernels, GateAndUpBecomeOnePairedProductWithSiTU) {
  Compiled compiled(R"(
    nn.tensor @gate "g{}" members [0] files [0] offsets [0] : tensor<48x64xbf16>
    nn.tensor @up "u{}" members [0] files [0] offsets [0] : tensor<48x64xbf16>
    nn.stack @gate_up [@gate, @up] rows [48, 48] : tensor<96x64xbf16>
    func.func @f(%x: tensor<5x64xbf16>, %live: tensor<1xi32>, %layer: index) -> tensor<5x48xf32> {
      %w = nn.weight @gate_up[%layer] : tensor<96x64xbf16>
      %gu = nn.linear %x, %w live %live : (tensor<5x64xbf16>, tensor<96x64xbf16>, tensor<1xi32>) -> tensor<5x96xbf16>
      %g = nn.columns %gu[0:48] : tensor<5x96xbf16>
      %u = nn.columns %gu[48:96] : tensor<5x96xbf16>
      %r = nn.map ["situ"] live %live (%g, %u) {
      ^bb0(%a: f32, %b: f32):
        %one = arith.constant 1.0 : f32
        %beta = arith.constant 4.0 : f32
        %inv = arith.constant 0.25 : f32
        %n = arith.negf %a : f32
        %e = math.exp %n : f32
        %d = arith.addf %one, %e : f32
        %s = arith.divf %one, %d : f32
        %z = arith.mulf %a, %inv : f32
        %t = math.tanh %z : f32
        %h = arith.mulf %t, %beta : f32
        %i = arith.mulf %h, %s : f32
        %o = arith.mulf %i, %b : f32
        nn.yield %o : f32
      } : (tensor<1xi32>, tensor<5x48xbf16>, tensor<5x48xbf16>) -> tensor<5x48xf32>
      return %r : tensor<5x48xf32>
    })");
  ASSERT_EQ(compiled.names(), "nn.linear");
  int32_t live = kLive;
  auto x = halves(numbers(kRows * 64, 3)), gate = halves(numbers(48 * 64, 4)), up = halves(numbers(48 * 64, 5));
  std::vector<uint16_t> w; // 16 rows of each matrix in turns
  for (int row = 0; row < 48; row += 16)
    for (const auto *matrix : {&gate, &up})
      w.insert(w.end(), matrix->begin() + row * 64, matrix->begin() + (row + 16) * 64);
  std::vector<double> expected;
  for (int t = 0; t < kLive; ++t)
    for (int n = 0; n < 48; ++n) {
      double g = 0, u = 0;
      for (int k = 0; k < 64; ++k) {
        g += double(fromBf16(x[t * 64 + k])) * fromBf16(gate[n * 64 + k]);
        u += double(fromBf16(x[t * 64 + k])) * fromBf16(up[n * 64 + k]);
      }
      expected.push_back(4 * std::tanh(g / 4) * sigmoid(g) * u);
    }
  std::vector<float> out(kRows * 48);
  compiled.run(
      0, {x.data(), w.data(), &live, out.data()}, [&] { std::fill(out.begin(), out.end(), -77); },
      [&] { expectNear(out, expected, 1e-5); });
}

TEST(Kernels, GroupedLinearReadsPackedWeights) {
  // Two experts of 16 x 32, rows 0..2 and 2..5, then a region.
  Compiled compiled(R"(
    func.func @f(%x: tensor<6x32xf32>, %w: tensor<2x16x32xf4E2M1FN>, %s: tensor<2x16x1xf8E8M0FNU>, %o: tensor<3xi32>)
        -> tensor<6x16xf32> {
      %live = nn.columns %o[2 : 3] : tensor<3xi32>
      %y = moe.grouped_linear %x, %w scale %s offsets %o
        : (tensor<6x32xf32>, tensor<2x16x32xf4E2M1FN>, tensor<2x16x1xf8E8M0FNU>, tensor<3xi32>) -> tensor<6x16xf32>
      %r = nn.map ["relu"] live %live (%y) {
      ^bb0(%v: f32):
        %zero = arith.constant 0.0 : f32
        %m = arith.maximumf %v, %zero : f32
        nn.yield %m : f32
      } : (tensor<1xi32>, tensor<6x16xf32>) -> tensor<6x16xf32>
      return %r : tensor<6x16xf32>
    })");
  ASSERT_EQ(compiled.names(), "moe.grouped_linear");
  const float codes[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};
  auto x = numbers(6 * 32, 6);
  std::vector<uint8_t> w(2 * 16 * 16), s(2 * 16);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<uint8_t>(i * 37 + 11);
  for (size_t i = 0; i < s.size(); ++i)
    s[i] = static_cast<uint8_t>(125 + i % 5); // 2^-2 .. 2^2
  int32_t offsets[3] = {0, 2, 5};
  std::vector<double> expected;
  for (int r = 0; r < 5; ++r)
    for (int n = 0; n < 16; ++n) {
      int row = (r < 2 ? 0 : 16) + n;
      double sum = 0;
      for (int k = 0; k < 32; ++k)
        sum += x[r * 32 + k] * codes[w[row * 16 + k / 2] >> (k % 2 * 4) & 15] * std::ldexp(1.0, s[row] - 127);
      expected.push_back(std::max(sum, 0.0));
    }
  std::vector<float> out(6 * 16);
  compiled.run(
      0, {x.data(), w.data(), s.data(), offsets, out.data()}, [&] { std::fill(out.begin(), out.end(), -77); },
      [&] { expectNear(out, expected, 1e-5); });
}

// A new activation is a region, not a kernel: no file of this project knows "squared relu of tanh".
constexpr char kNewActivation[] = R"(
    func.func @f(%x: tensor<5x64xf32>, %w: tensor<40x64xf32>, %b: tensor<40xf32>, %live: tensor<1xi32>) -> tensor<5x40xf32> {
      %h = nn.linear %x, %w live %live : (tensor<5x64xf32>, tensor<40x64xf32>, tensor<1xi32>) -> tensor<5x40xf32>
      %r = nn.map ["squared_relu_tanh"] live %live (%h, %b) {
      ^bb0(%v: f32, %bias: f32):
        %zero = arith.constant 0.0 : f32
        %s = arith.addf %v, %bias : f32
        %t = math.tanh %s : f32
        %p = arith.cmpf ogt, %t, %zero : f32
        %q = arith.mulf %t, %t : f32
        %o = arith.select %p, %q, %zero : f32
        nn.yield %o : f32
      } : (tensor<1xi32>, tensor<5x40xf32>, tensor<40xf32>) -> tensor<5x40xf32>
      return %r : tensor<5x40xf32>
    })";

TEST(Kernels, ANewActivationNeedsOnlyIR) {
  Compiled compiled(kNewActivation);
  ASSERT_EQ(compiled.names(), "nn.linear");
  int32_t live = kLive;
  auto x = numbers(kRows * 64, 7), w = numbers(40 * 64, 8, .3f), bias = numbers(40, 9);
  std::vector<double> expected;
  for (int t = 0; t < kLive; ++t)
    for (int n = 0; n < 40; ++n) {
      double sum = bias[n];
      for (int k = 0; k < 64; ++k)
        sum += double(x[t * 64 + k]) * w[n * 64 + k];
      double h = std::tanh(sum);
      expected.push_back(h > 0 ? h * h : 0);
    }
  std::vector<float> out(kRows * 40);
  compiled.run(
      0, {x.data(), w.data(), &live, bias.data(), out.data()}, [&] { std::fill(out.begin(), out.end(), -77); },
      [&] { expectNear(out, expected, 1e-5); });
}

TEST(Images, AreTheSameBytesAgainAndFromTheCache) {
  std::string cache = ::testing::TempDir() + "/k31-codegen-cache-" + std::to_string(getpid());
  auto start = std::chrono::steady_clock::now();
  Compiled first(kNewActivation, cache);
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  Compiled second(kNewActivation, cache), third(kNewActivation);
  constexpr int kLevels = 4; // nn.linear multiplies bf16 in its own way at every one
  ASSERT_EQ(first.images().size(), size_t(kLevels));
  EXPECT_EQ(first.stats().compiled, kLevels);
  EXPECT_EQ(first.stats().cached, 0);
  EXPECT_EQ(second.stats().compiled, 0);
  EXPECT_EQ(second.stats().cached, kLevels);
  for (size_t i = 0; i < size_t(kLevels); ++i) {
    EXPECT_EQ(first.images()[i].code, second.images()[i].code);
    EXPECT_EQ(first.images()[i].code, third.images()[i].code);
  }
  std::cout << "one kernel at every level, text to images: " << took.count() << " ms\n";

  // A damaged object is made again.
  for (const auto &file : std::filesystem::directory_iterator(cache))
    std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 1);
  Compiled repaired(kNewActivation, cache);
  EXPECT_EQ(repaired.stats().compiled, kLevels);
  EXPECT_EQ(repaired.images()[0].code, first.images()[0].code);
  std::filesystem::remove_all(cache);
}

} // namespace k31::test
