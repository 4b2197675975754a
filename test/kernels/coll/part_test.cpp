#include "codegen/kernels/coll/part.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using part::Args, part::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

void check(int rows, int live, int cols, int part, int rank, DType type, uint32_t tasks) {
  SCOPED_TRACE(::testing::Message() << live << " rows of " << cols << ", rank " << rank << " of parts of " << part);
  Tensor x(type, rows, cols, cols + 3), out(type, rows, part, part);
  x.fill([] { return (float)uniform_int(-1000, 1000); });
  k31_config = {rows, cols, part, (int)x.ld(), type};
  int32_t live_rows = live, coordinate = rank;
  launch(k31_entry, Args{x.data(), &live_rows, &coordinate, out.data()}, tasks);
  expect_close(out, live, [&](int64_t r, int64_t c) { return rank * part + c < cols ? x.at(r, rank * part + c) : 0.0f; }, 0);
}

TEST(Part, ColumnsOfARank) {
  for (DType type : {DType::f32, DType::bf16})
    for (int rank : {0, 1, 2})
      check(5, 4, 24, 8, rank, type, 2);
}
TEST(Part, ZeroPastTheEnd) {
  check(3, 3, 13, 5, 2, DType::bf16, 1);
  check(3, 3, 13, 5, 3, DType::f32, 1); // nothing left
}
TEST(Part, NoLiveRow) { check(3, 0, 16, 8, 1, DType::bf16, 1); }

} // namespace
