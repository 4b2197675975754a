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

TEST(Combine, WeightedSumOfSlots) {
  for (DType x_type : {DType::f32, DType::bf16})
    for (DType out_type : {DType::f32, DType::bf16})
      for (int cols : {1, 16, 40, 64, 200})
        for (uint32_t tasks : {1u, 3u, 20u}) {
          const int rows = 6, live = 4, top_k = 3;
          Tensor x(x_type, rows * top_k, cols, cols + 2), out(out_type, rows, cols, cols + 5);
          Tensor weights(DType::f32, rows, top_k), slot(DType::i32, rows, top_k);
          weights.fill_normal(1, live);
          // Row 0 has no local expert; elsewhere a third of the slots is absent. Rows of x that nobody chose stay poisoned.
          slot.fill([&] { return uniform_int(0, 2) ? (float)uniform_int(0, rows * top_k - 1) : -1.0f; }, live);
          for (int i = 0; i < top_k; ++i)
            slot.set(0, i, -1);
          for (int r = 1; r < live; ++r)
            for (int i = 0; i < top_k; ++i)
              for (int c = 0; c < cols && slot.at(r, i) >= 0; ++c)
                x.set((int64_t)slot.at(r, i), c, normal());
          k31_config = {rows, cols, top_k, (int)x.ld(), (int)out.ld(), x_type, out_type};
          int32_t live_rows = live;
          Args args{x.data(), weights.as<float>(), slot.as<int32_t>(), &live_rows, out.data()};
          launch(k31_entry, args, tasks);
          expect_close(
              out, live,
              [&](int64_t r, int64_t c) {
                double sum = 0;
                for (int i = 0; i < top_k; ++i)
                  if (slot.at(r, i) >= 0)
                    sum += (double)weights.at(r, i) * x.at((int64_t)slot.at(r, i), c);
                return sum;
              },
              2e-6);
        }
}

TEST(Combine, RowsOfSeveralRanks) {
  const int groups = 2, capacity = 3, rows = groups * capacity, top_k = 2, cols = 70;
  const int32_t live[groups] = {1, 2};
  Tensor x(DType::f32, rows * top_k, cols, cols), out(DType::f32, rows, cols, cols);
  Tensor weights(DType::f32, rows, top_k), slot(DType::i32, rows, top_k);
  x.fill_normal(1), weights.fill_normal(1);
  slot.fill([&] { return (float)uniform_int(-1, rows * top_k - 1); });
  k31_config = {rows, cols, top_k, cols, cols, DType::f32, DType::f32, groups, capacity};
  launch(k31_entry, Args{x.data(), weights.as<float>(), slot.as<int32_t>(), live, out.data()}, 4);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      double sum = 0;
      for (int i = 0; i < top_k; ++i)
        if (slot.at(r, i) >= 0)
          sum += (double)weights.at(r, i) * x.at((int64_t)slot.at(r, i), c);
      if (r % capacity < live[r / capacity])
        EXPECT_NEAR(out.at(r, c), sum, 1e-5) << "row " << r << " column " << c;
      else
        EXPECT_TRUE(std::isnan(out.at(r, c))) << "row " << r << " is dead, yet written";
    }
}

} // namespace
