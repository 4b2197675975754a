// Elementary functions of fused regions against the C library in double precision.
#include "test/codegen/compile.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

namespace k31::test {
namespace {

constexpr int kCount = 4096;

// Distance in units of the last place of the fp32 number nearest to `expected`.
double ulps(float got, double expected) {
  if (std::isnan(expected) || std::isinf(static_cast<float>(expected)))
    return std::isnan(expected) == std::isnan(got) && (std::isnan(expected) || got == static_cast<float>(expected)) ? 0 : 1e30;
  double size = std::abs(expected), unit = std::max<double>(std::ldexp(1.0, std::ilogb(size) - 23), 1.4e-45);
  return std::abs(got - expected) / unit;
}

struct Case {
  const char *body; // of %x, its value is %y
  double (*reference)(double);
  float from, to;
  double limit; // ulps
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }
double situ(double x) { return 4 * std::tanh(x / 4) * sigmoid(x); }
double rsqrt(double x) { return 1 / std::sqrt(x); }

constexpr char kSigmoid[] = "%c1 = arith.constant 1.0 : f32\n %n = arith.negf %x : f32\n %e = math.exp %n : f32\n"
                            "%d = arith.addf %c1, %e : f32\n %y = arith.divf %c1, %d : f32\n";
constexpr char kSoftplus[] =
    "%c0 = arith.constant 0.0 : f32\n %b = math.absf %x : f32\n %n = arith.negf %b : f32\n %e = math.exp %n : f32\n"
    "%l = math.log1p %e : f32\n %m = arith.maximumf %x, %c0 : f32\n %y = arith.addf %m, %l : f32\n";
constexpr char kSitu[] =
    "%c1 = arith.constant 1.0 : f32\n %c4 = arith.constant 4.0 : f32\n %q = arith.constant 0.25 : f32\n"
    "%n = arith.negf %x : f32\n %e = math.exp %n : f32\n %d = arith.addf %c1, %e : f32\n %s = arith.divf %c1, %d : f32\n"
    "%z = arith.mulf %x, %q : f32\n %t = math.tanh %z : f32\n %u = arith.mulf %t, %c4 : f32\n %y = arith.mulf %u, %s : f32\n";

const Case kCases[] = {
    {"%y = math.exp %x : f32\n", std::exp, -87, 88.5, 2},
    {"%y = math.log %x : f32\n", std::log, 1e-30f, 50, 4},
    {"%y = math.log1p %x : f32\n", std::log1p, -0.9f, 30, 6},
    {"%y = math.tanh %x : f32\n", std::tanh, -12, 12, 3},
    {"%y = math.tanh %x : f32\n", std::tanh, -0.7f, 0.7f, 3},
    {"%y = math.erf %x : f32\n", std::erf, -4, 4, 8},
    {"%y = math.rsqrt %x : f32\n", rsqrt, 1e-6f, 1e6f, 2},
    {"%y = math.sqrt %x : f32\n", std::sqrt, 0, 1e6f, 1},
    {"%y = math.floor %x : f32\n", std::floor, -100, 100, 0},
    {kSigmoid, sigmoid, -80, 80, 4},
    {kSoftplus, softplus, -40, 40, 6},
    {kSitu, situ, -60, 60, 8},
};

std::string moduleOf(const char *body) {
  return std::string("func.func @f(%live: tensor<1xi32>, %a: tensor<1x4096xf32>) -> tensor<1x4096xf32> {\n"
                     "%r = nn.map [\"f\"] live %live (%a) {\n^bb0(%x: f32):\n") +
         body +
         "nn.yield %y : f32\n} : (tensor<1xi32>, tensor<1x4096xf32>) -> tensor<1x4096xf32>\nreturn %r : tensor<1x4096xf32>\n}\n";
}

} // namespace

TEST(ExpandMath, IsWithinSomeUlpsOfTheLibrary) {
  for (const Case &one : kCases) {
    SCOPED_TRACE(one.body);
    std::vector<float> x(kCount), y(kCount);
    for (int i = 0; i < kCount; ++i)
      x[i] = one.from + (one.to - one.from) * (static_cast<float>(i) / (kCount - 1));
    int32_t live = 1;
    Compiled compiled(moduleOf(one.body));
    compiled.run(
        0, {&live, x.data(), y.data()}, [&] { std::fill(y.begin(), y.end(), -7e7f); },
        [&] {
          double worst = 0;
          int at = 0;
          for (int i = 0; i < kCount; ++i)
            if (double u = ulps(y[i], one.reference(x[i])); u > worst)
              worst = u, at = i;
          EXPECT_LE(worst, one.limit) << "f(" << x[at] << ") = " << y[at] << ", expected " << one.reference(x[at]);
        });
  }
}

TEST(ExpandMath, KeepsLimitsAndNaN) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x(kCount, 0), y(kCount);
  x[0] = nan, x[1] = inf, x[2] = -inf, x[3] = 1e30f, x[4] = -1e30f;
  int32_t live = 1;
  Compiled tanh(moduleOf("%y = math.tanh %x : f32\n")), exp(moduleOf("%y = math.exp %x : f32\n"));
  auto none = [] {};
  tanh.run(0, {&live, x.data(), y.data()}, none, [&] {
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], -1);
    EXPECT_EQ(y[3], 1);
    EXPECT_EQ(y[4], -1);
    EXPECT_EQ(y[5], 0);
  });
  exp.run(0, {&live, x.data(), y.data()}, none, [&] {
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], inf);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], inf);
    EXPECT_EQ(y[4], 0);
    EXPECT_EQ(y[5], 1);
  });
}

} // namespace k31::test
