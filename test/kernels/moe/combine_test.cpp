#include "codegen/kernels/moe/combine.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using combine::Args, combine::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Setting {
  int cols, top_k;
  std::vector<int> live; // of each group
  int capacity;          // rows of a group
  bool weighted = true;
  DType x_type = DType::f32, out_type = DType::f32;
  uint32_t tasks = 4;
};

void check(const Setting &s) {
  SCOPED_TRACE(::testing::Message() << s.cols << " columns, " << s.live.size() << " groups, " << s.tasks << " tasks");
  const int groups = (int)s.live.size(), rows = groups * s.capacity, cols = s.cols, top_k = s.top_k;
  auto alive = [&](int64_t row) { return row % s.capacity < s.live[row / s.capacity]; };
  Tensor x(s.x_type, rows * top_k, cols, cols + 2), out(s.out_type, rows, cols, cols + 5);
  Tensor weights(DType::f32, rows, top_k), slot(DType::i32, rows, top_k);
  weights.fill_normal();
  // The first row of a group has no slot; elsewhere a third of them is absent. Rows of x that nobody chose stay poisoned.
  slot.fill([&] { return uniform_int(0, 2) ? (float)uniform_int(0, rows * top_k - 1) : -1.0f; });
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < top_k; ++i)
      if (r % s.capacity == 0)
        slot.set(r, i, -1);
      else
        for (int c = 0; c < cols && alive(r) && slot.at(r, i) >= 0; ++c)
          x.set((int64_t)slot.at(r, i), c, normal());
  k31_config = {rows, cols, top_k, (int)x.ld(), (int)out.ld(), s.x_type, s.out_type, groups, s.capacity, s.weighted};
  std::vector<int32_t> live(s.live.begin(), s.live.end());
  Args args{x.data(), {}};
  void **next = args.tail;
  if (s.weighted)
    *next++ = weights.data();
  *next++ = slot.data(), *next++ = live.data(), *next++ = out.data();
  launch(k31_entry, args, s.tasks);
  EXPECT_TRUE(out.untouched_outside(rows));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      if (!alive(r)) {
        ASSERT_TRUE(std::isnan(out.at(r, c))) << "row " << r << " is dead, yet written";
        continue;
      }
      double sum = 0;
      for (int i = 0; i < top_k; ++i)
        if (slot.at(r, i) >= 0)
          sum += (s.weighted ? (double)weights.at(r, i) : 1) * x.at((int64_t)slot.at(r, i), c);
      ASSERT_NEAR(out.at(r, c), sum, 4e-6 + (s.out_type == DType::bf16 ? std::abs(sum) / 256 : 0)) << r << ", " << c;
    }
}

TEST(Combine, SumOfSlots) {
  for (bool weighted : {true, false})
    for (DType x_type : {DType::f32, DType::bf16})
      for (DType out_type : {DType::f32, DType::bf16})
        for (int cols : {1, 16, 40, 64, 200})
          for (uint32_t tasks : {1u, 3u, 20u})
            check({cols, 3, {4}, 6, weighted, x_type, out_type, tasks});
}
TEST(Combine, RowsOfSeveralRanks) {
  check({70, 2, {1, 2}, 3});
  check({16, 3, {2, 0, 5}, 5, false, DType::bf16, DType::bf16});
}
TEST(Combine, NoRow) { check({8, 2, {0}, 5, false}); }

} // namespace
