// How verify compares values.
#include "tools/k31_run/compare.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

namespace k31::run {
namespace {

template <class T> Values values(const std::vector<T> &v, plan::DType type, uint64_t columns = 1) {
  return {std::as_bytes(std::span(v)), type, columns};
}
Values f32(const std::vector<float> &v, uint64_t columns = 1) { return values(v, plan::DType::f32, columns); }

float unwritten() {
  float value;
  memset(&value, int(kUnwritten), 4);
  return value;
}

TEST(Compare, FindsTheLargestDifferenceAndItsPlace) {
  const std::vector<float> a = {1, 2, 3, -8}, b = {1, 2.5f, 3, -8.25f};
  const Difference d = compare(f32(a, 2), f32(b, 2));
  EXPECT_EQ(d.at, 1u);
  EXPECT_EQ(d.differing, 2u);
  EXPECT_EQ(d.compared, 4u);
  EXPECT_DOUBLE_EQ(d.relative, 0.5 / 8.25);
  EXPECT_EQ(f32(a, 2).shape(), "f32 [2, 2]");
  EXPECT_EQ(compare(f32(a), f32(a)).relative, 0);
}

TEST(Compare, TypesMayDiffer) {
  const std::vector<float> a = {1.5f, -2, 0.25f};
  const std::vector<uint16_t> b = {0x3fc0, 0xc000, 0x3e80}; // the same in bf16
  EXPECT_EQ(compare(f32(a), values(b, plan::DType::bf16)).relative, 0);
  const std::vector<uint16_t> c = {0x3fc0, 0xc000, 0x3e82};
  EXPECT_GT(compare(f32(a), values(c, plan::DType::bf16)).relative, 0);
}

TEST(Compare, RowsThatNobodyWroteDoNotCount) {
  const std::vector<float> a = {1, unwritten(), unwritten()}, b = {1, unwritten()}; // another capacity too
  const Difference d = compare(f32(a), f32(b));
  EXPECT_EQ(d.compared, 1u);
  EXPECT_EQ(d.relative, 0);
  const std::vector<float> c = {1, 0};
  EXPECT_TRUE(std::isinf(compare(f32(a), f32(c)).relative)); // one side wrote it
  EXPECT_EQ(compare(f32(a), f32(c)).at, 1u);
  EXPECT_EQ(f32(a).text(1), "nothing");
}

TEST(Compare, ValuesThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> a = {nan, inf, 1}, b = {0, inf, 1}, c = {nan, -inf, 1};
  EXPECT_EQ(compare(f32(a), f32(a)).relative, 0);
  EXPECT_TRUE(std::isinf(compare(f32(a), f32(b)).relative));
  EXPECT_EQ(compare(f32(a), f32(c)).at, 1u);
}

TEST(Compare, IntegersAreEqualOrNot) {
  const std::vector<int32_t> a = {5, 7, -1}, b = {5, 9, 100};
  const Difference d = compare(values(a, plan::DType::i32), values(b, plan::DType::i32));
  EXPECT_EQ(d.relative, 1);
  EXPECT_EQ(d.at, 1u); // the first
  EXPECT_EQ(d.differing, 2u);
}

} // namespace
} // namespace k31::run
