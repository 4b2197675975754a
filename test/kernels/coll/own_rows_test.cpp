#include "codegen/kernels/coll/own_rows.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using own_rows::Args, own_rows::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

void check(int live, int rank, int own, DType type, uint32_t tasks) {
  SCOPED_TRACE(::testing::Message() << live << " live rows, rank " << rank);
  const int rows = 12, share = 4, cols = 7;
  Tensor x(type, rows, cols, cols + 3), out(type, share, cols), count(DType::i32, 1, 1);
  x.fill_normal(1, live);
  k31_config = {cols, share, (int)x.ld(), type};
  int32_t live_rows = live, coordinate = rank;
  launch(k31_entry, Args{x.data(), &live_rows, &coordinate, out.data(), count.as<int32_t>()}, tasks);
  expect_close(count, 1, [&](int64_t, int64_t) { return own; }, 0, "own live");
  expect_close(out, own, [&](int64_t r, int64_t c) { return x.at(rank * share + r, c); }, 0);
}

TEST(OwnRows, SharesOfTheRanks) {
  for (DType type : {DType::f32, DType::bf16})
    for (uint32_t tasks : {1u, 3u})
      for (int rank : {0, 1, 2})
        check(12, rank, 4, type, tasks);
}
TEST(OwnRows, TheLiveOnesEndEarlier) {
  check(6, 0, 4, DType::bf16, 2);
  check(6, 1, 2, DType::bf16, 2);
  check(6, 2, 0, DType::bf16, 2);
  check(0, 0, 0, DType::f32, 1);
}

} // namespace
