#include "codegen/kernels/nn/head_linear.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using head_linear::Args, head_linear::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Case {
  int live, heads, in, out;
  bool transposed;
  DType x_type = DType::bf16, w_type = DType::bf16, out_type = DType::f32;
  uint32_t tasks = 1;
};

// W[h] begins inside a wider matrix, as W_UK and W_UV do in kv_b_proj: `before` elements, then one matrix, then `after` a head.
void check(const Case &t) {
  SCOPED_TRACE(::testing::Message() << "live " << t.live << " heads " << t.heads << " in " << t.in << " out " << t.out
                                    << " transposed " << t.transposed << " tasks " << t.tasks);
  const int rows = t.live + 1, before = t.in, after = 2 * t.in, head_x = t.in + 2;
  const int head_w = before + t.in * t.out + after;
  Tensor x(t.x_type, rows, t.heads * head_x, t.heads * head_x + 1), w(t.w_type, t.heads, head_w),
      y(t.out_type, rows, t.heads * t.out, t.heads * t.out + 3);
  for (int r = 0; r < t.live; ++r) // the gaps between heads stay poisoned
    for (int h = 0; h < t.heads; ++h)
      for (int k = 0; k < t.in; ++k)
        x.set(r, h * head_x + k, normal());
  for (int h = 0; h < t.heads; ++h)
    for (int i = 0; i < t.in * t.out; ++i)
      w.set(h, before + i, normal(1 / std::sqrt((float)t.in)));
  k31_config = Config{};
  k31_config.rows = rows, k31_config.heads = t.heads, k31_config.in = t.in, k31_config.out = t.out;
  k31_config.transposed = t.transposed, k31_config.ld_x = (int)x.ld(), k31_config.head_x = head_x, k31_config.head_w = head_w;
  k31_config.w_begin = before, k31_config.ld_out = (int)y.ld();
  k31_config.x_type = t.x_type, k31_config.w_type = t.w_type, k31_config.out_type = t.out_type;
  int32_t live = t.live;
  launch(k31_entry, Args{x.data(), w.data(), &live, y.data()}, t.tasks);
  expect_close(
      y, t.live,
      [&](int64_t r, int64_t c) {
        int64_t h = c / t.out, n = c % t.out;
        double sum = 0;
        for (int k = 0; k < t.in; ++k)
          sum += (double)x.at(r, h * head_x + k) * w.at(h, before + (t.transposed ? k * t.out + n : n * t.in + k));
        return sum;
      },
      2e-5);
}

TEST(HeadLinear, RowCounts) {
  for (bool transposed : {false, true})
    for (int live : {0, 1, 2, 3, 4, 5, 6, 7, 9})
      check({live, 3, 32, 48, transposed});
}
TEST(HeadLinear, Tails) {
  for (bool transposed : {false, true})
    for (int in : {1, 16, 24, 33})
      for (int out : {1, 6, 16, 63, 64, 65, 100})
        check({3, 2, in, out, transposed});
}
TEST(HeadLinear, TypesAndTasks) {
  for (bool transposed : {false, true})
    for (DType x : {DType::f32, DType::bf16})
      for (DType w : {DType::f32, DType::bf16})
        for (DType out : {DType::f32, DType::bf16})
          for (uint32_t tasks : {1u, 4u, 11u})
            check({5, 3, 40, 130, transposed, x, w, out, tasks});
}

} // namespace
