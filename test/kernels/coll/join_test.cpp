#include "codegen/kernels/coll/join.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using join::Args, join::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

void check(int rows, int live, int part, int size, int cols, DType type, uint32_t tasks) {
  SCOPED_TRACE(::testing::Message() << live << " rows, " << size << " parts of " << part << " to " << cols);
  Tensor x(type, size * rows, part, part), out(type, rows, cols, cols);
  x.fill([] { return (float)uniform_int(-1000, 1000); });
  k31_config = {rows, part, cols, size, type};
  int32_t live_rows = live;
  launch(k31_entry, Args{x.data(), &live_rows, out.data()}, tasks);
  expect_close(out, live, [&](int64_t r, int64_t c) { return x.at(c / part * rows + r, c % part); }, 0);
}

TEST(Join, WholeParts) {
  for (DType type : {DType::f32, DType::bf16})
    for (uint32_t tasks : {1u, 3u}) {
      check(5, 5, 8, 2, 16, type, tasks);
      check(5, 3, 7, 4, 28, type, tasks);
    }
}
TEST(Join, LastPartIsShorter) { check(4, 4, 5, 3, 13, DType::f32, 2); }
TEST(Join, NoLiveRow) { check(4, 0, 5, 3, 15, DType::bf16, 1); }

} // namespace
