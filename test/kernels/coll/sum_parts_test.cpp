#include "codegen/kernels/coll/sum_parts.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using sum_parts::Args, sum_parts::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

// Of what a rank did not get it says nothing: those rows of x stay poisoned.
void check(const std::vector<int> &live, int cols, int size, DType type, uint32_t tasks) {
  const int groups = (int)live.size(), capacity = 5, rows = groups * capacity;
  Tensor x(type, size * rows, cols), slot(DType::i32, rows, size), out(type, rows, cols);
  std::vector<int> next(size, 0);
  std::vector<bool> alive(rows, false);
  for (int g = 0; g < groups; ++g)
    for (int i = 0; i < live[g]; ++i) {
      const int row = g * capacity + i;
      alive[row] = true;
      for (int d = 0; d < size; ++d) {
        const bool went = i > 0 && uniform_int(0, 2) > 0; // the first row of a group went nowhere
        slot.set(row, d, went ? next[d] : -1);
        if (went)
          for (int c = 0; c < cols; ++c)
            x.set(d * rows + next[d], c, normal());
        next[d] += went;
      }
    }
  k31_config = {rows, rows, cols, size, type, groups, groups > 1 ? capacity : 0};
  std::vector<int32_t> counts(live.begin(), live.end());
  launch(k31_entry, Args{x.data(), slot.as<int32_t>(), counts.data(), out.data()}, tasks);
  for (int row = 0; row < rows; ++row)
    for (int c = 0; c < cols; ++c) {
      if (!alive[row]) {
        EXPECT_TRUE(std::isnan(out.at(row, c))) << "a dead row was written";
        continue;
      }
      double want = 0;
      for (int d = 0; d < size; ++d)
        if (slot.at(row, d) >= 0)
          want += x.at(d * rows + (int)slot.at(row, d), c);
      EXPECT_NEAR(out.at(row, c), want, 1e-5 + (type == DType::bf16 ? std::abs(want) / 256 : 0)) << row << ", " << c;
    }
}

TEST(SumParts, OfAllRanks) {
  for (DType type : {DType::f32, DType::bf16})
    for (uint32_t tasks : {1u, 3u})
      check({5}, 37, 4, type, tasks);
}
TEST(SumParts, RowsOfSeveralRanks) { check({2, 0, 5}, 16, 3, DType::bf16, 2); }
TEST(SumParts, NoRow) { check({0}, 8, 2, DType::f32, 1); }

} // namespace
