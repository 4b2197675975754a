#include "codegen/kernels/nn/gather.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using gather::Args, gather::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

TEST(Gather, ChosenRows) {
  for (DType type : {DType::f32, DType::bf16, DType::i32})
    for (uint32_t tasks : {1u, 2u, 9u}) {
      const int rows = 7, live = 5, cols = 19, source_rows = 10;
      Tensor x(type, source_rows, cols, cols + 2), out(type, rows, cols, cols + 3);
      x.fill([] { return (float)uniform_int(-1000, 1000); });
      const int32_t index[rows] = {9, 0, 4, 4, 2, -1, -1};
      k31_config = {rows, cols, (int)x.ld(), (int)out.ld(), type};
      int32_t live_rows = live;
      launch(k31_entry, Args{x.data(), index, &live_rows, out.data()}, tasks);
      expect_close(out, live, [&](int64_t r, int64_t c) { return x.at(index[r], c); }, 0);
    }
}

} // namespace
