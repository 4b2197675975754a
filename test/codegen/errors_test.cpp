// What the back end refuses, and what it says.
#include "test/codegen/compile.h"
#include <gtest/gtest.h>

namespace k31::test {
namespace {

std::string rowOf(const std::string &body) {
  return "func.func @f(%live: tensor<1xi32>, %a: tensor<2x32xf32>) -> tensor<2x32xf32> {\n"
         "%r = nn.row [\"f\"] live %live (%a) {\n^bb0(%x: f32):\n" +
         body + "} : (tensor<1xi32>, tensor<2x32xf32>) -> tensor<2x32xf32>\nreturn %r : tensor<2x32xf32>\n}\n";
}

void expectError(const std::string &text, const std::string &part) {
  std::string errors = errorsOf(text);
  EXPECT_NE(errors.find(part), std::string::npos) << "found: " << errors;
}

} // namespace

TEST(BackendErrors, MathThatNeedsALibrary) {
  expectError(rowOf("%y = math.powf %x, %x : f32\n nn.yield %y : f32\n"), "has no form without a math library");
}

TEST(BackendErrors, SumsThatAreTooDeep) {
  std::string body = "%s0 = nn.sum %x : f32\n";
  for (int i = 1; i < 5; ++i) {
    std::string n = std::to_string(i), m = std::to_string(i - 1);
    body += "%p" + n + " = arith.mulf %x, %s" + m + " : f32\n%s" + n + " = nn.sum %p" + n + " : f32\n";
  }
  expectError(rowOf(body + "nn.yield %s4 : f32\n"), "has sums of depth 5; a kernel runs 4 phases");
}

TEST(BackendErrors, TooManySums) {
  std::string body = "%t0 = arith.constant 0.0 : f32\n";
  for (int i = 1; i < 34; ++i) {
    std::string n = std::to_string(i), m = std::to_string(i - 1);
    body += "%c" + n + " = arith.constant " + n + ".0 : f32\n%p" + n + " = arith.mulf %x, %c" + n + " : f32\n%s" + n +
            " = nn.sum %p" + n + " : f32\n%t" + n + " = arith.addf %t" + m + ", %s" + n + " : f32\n";
  }
  expectError(rowOf(body + "nn.yield %t33 : f32\n"), "has 33 sums; a kernel holds 32");
}

TEST(BackendErrors, ElementTypesWithoutAKernel) {
  expectError("func.func @f(%x: tensor<2x32xf64>, %w: tensor<16x32xbf16>, %live: tensor<1xi32>) -> tensor<2x16xf32> {\n"
              "%r = nn.linear %x, %w live %live : (tensor<2x32xf64>, tensor<16x32xbf16>, tensor<1xi32>) -> tensor<2x16xf32>\n"
              "return %r : tensor<2x16xf32>\n}\n",
              "f64");
}

} // namespace k31::test
