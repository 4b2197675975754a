// Products of bf16 by every way that the levels of this processor have: vectors of fp32, AVX512-BF16, tiles of AMX. Rows are few
// and many, and no size is a multiple of a tile.
#include "test/codegen/compile.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <gtest/gtest.h>

namespace k31::test {
namespace {

constexpr int kRows = 600, kN = 150, kK = 544;

std::vector<uint16_t> numbers(size_t n, uint32_t seed) {
  std::vector<uint16_t> v(n);
  for (uint16_t &x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = toBf16(static_cast<float>(seed >> 8) / (1 << 23) - 1);
  }
  return v;
}

// Dead rows of x are NaN and must not be seen.
std::vector<uint16_t> rowsOfX(int live, int k = kK) {
  auto x = numbers(size_t(kRows) * k, 3);
  std::fill(x.begin() + size_t(live) * k, x.end(), 0x7fc0);
  return x;
}

void expectRows(const std::vector<float> &got, const std::vector<double> &expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << "row " << i / kN << " column " << i % kN;
  for (size_t i = expected.size(); i < got.size(); ++i)
    ASSERT_EQ(got[i], -77) << "row " << i / kN << " is dead";
}

} // namespace

TEST(Products, LinearOfFewAndManyRows) {
  Compiled compiled(R"(
    func.func @f(%x: tensor<600x544xbf16>, %w: tensor<150x544xbf16>, %live: tensor<1xi32>) -> tensor<600x150xf32> {
      %r = nn.linear %x, %w live %live : (tensor<600x544xbf16>, tensor<150x544xbf16>, tensor<1xi32>) -> tensor<600x150xf32>
      return %r : tensor<600x150xf32>
    })");
  ASSERT_EQ(compiled.names(), "nn.linear");
  const auto w = numbers(size_t(kN) * kK, 4);
  for (int32_t live : {1, 4, 8, 9, 16, 17, 33, 48, 530}) {
    SCOPED_TRACE(live);
    const auto x = rowsOfX(live);
    std::vector<double> expected;
    for (int r = 0; r < live; ++r)
      for (int n = 0; n < kN; ++n) {
        double sum = 0;
        for (int k = 0; k < kK; ++k)
          sum += double(fromBf16(x[size_t(r) * kK + k])) * fromBf16(w[size_t(n) * kK + k]);
        expected.push_back(sum);
      }
    std::vector<float> out(size_t(kRows) * kN);
    compiled.run(
        0, {x.data(), w.data(), &live, out.data()}, [&] { std::fill(out.begin(), out.end(), -77); },
        [&] { expectRows(out, expected); });
  }
}

// Experts of 150 rows of K columns; x of 600 rows, those that no expert has are NaN.
static void packedExperts(int k, std::vector<std::vector<int32_t>> splits) {
  const std::string text = llvm::formatv(R"(
    func.func @f(%x: tensor<600x{0}xbf16>, %w: tensor<4x150x{0}xf4E2M1FN>, %s: tensor<4x150x{1}xf8E8M0FNU>, %o: tensor<5xi32>)
        -> tensor<600x150xf32> {{
      %y = moe.grouped_linear %x, %w scale %s offsets %o
        : (tensor<600x{0}xbf16>, tensor<4x150x{0}xf4E2M1FN>, tensor<4x150x{1}xf8E8M0FNU>, tensor<5xi32>) -> tensor<600x150xf32>
      return %y : tensor<600x150xf32>
    })",
                                         k, k / 32);
  Compiled compiled(text);
  ASSERT_EQ(compiled.names(), "moe.grouped_linear");
  const float codes[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};
  std::vector<uint8_t> w(size_t(4) * kN * k / 2), s(size_t(4) * kN * k / 32);
  uint32_t seed = 5;
  for (uint8_t &byte : w)
    byte = static_cast<uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
  for (size_t i = 0; i < s.size(); ++i)
    s[i] = static_cast<uint8_t>(121 + i % 5); // 2^-6 .. 2^-2
  for (const auto &offsets : splits) {
    SCOPED_TRACE(offsets[4]);
    const auto x = rowsOfX(offsets[4], k);
    std::vector<double> expected;
    for (int e = 0; e < 4; ++e)
      for (int r = offsets[e]; r < offsets[e + 1]; ++r)
        for (int n = 0; n < kN; ++n) {
          const size_t row = size_t(e) * kN + n;
          double sum = 0;
          for (int i = 0; i < k; ++i)
            sum += double(fromBf16(x[size_t(r) * k + i])) * codes[w[(row * k + i) / 2] >> (i % 2 * 4) & 15] *
                   std::ldexp(1.0, s[row * (k / 32) + i / 32] - 127);
          expected.push_back(sum);
        }
    std::vector<float> out(size_t(kRows) * kN);
    compiled.run(
        0, {x.data(), w.data(), s.data(), offsets.data(), out.data()}, [&] { std::fill(out.begin(), out.end(), -77); },
        [&] { expectRows(out, expected); });
  }
}

TEST(Products, PackedExpertsWithFewAndManyRows) {
  packedExperts(544, {{0, 1, 1, 3, 8}, {0, 3, 12, 12, 57}, {0, 8, 540, 549, 551}});
}

TEST(Products, PackedExpertsWithColumnsByWords) { packedExperts(384, {{0, 1, 3, 6, 10}, {0, 5, 13, 13, 14}}); }

} // namespace k31::test
