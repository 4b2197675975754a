#include "codegen/kernels/coll/rows.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using rows::Args, rows::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

void check(int share, int live, int cols, int rank, DType type, uint32_t tasks) {
  SCOPED_TRACE(::testing::Message() << live << " of " << share << " rows of " << cols << ", rank " << rank);
  Tensor x(type, 3 * share, cols, cols + 3), out(type, share, cols, cols);
  x.fill([] { return (float)uniform_int(-1000, 1000); });
  k31_config = {share, cols, (int)x.ld(), type};
  int32_t live_rows = live, coordinate = rank;
  launch(k31_entry, Args{x.data(), &live_rows, &coordinate, out.data()}, tasks);
  expect_close(out, live, [&](int64_t r, int64_t c) { return x.at(rank * share + r, c); }, 0);
}

TEST(Rows, OfARank) {
  for (DType type : {DType::f32, DType::bf16})
    for (int rank : {0, 1, 2})
      check(5, 4, 24, rank, type, 2);
}
TEST(Rows, OneRow) { check(1, 1, 7, 2, DType::bf16, 4); }
TEST(Rows, NoLiveRow) { check(3, 0, 16, 1, DType::bf16, 1); }

} // namespace
