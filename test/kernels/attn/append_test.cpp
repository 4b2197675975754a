// attn.append against the definition of a paged cache, element by element: what is not written stays poison.
#include "codegen/kernels/attn/append.h"
#include "test/kernels/common/batch.h"

using namespace k31::test;
using namespace k31::kernels::append;
extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Case {
  int cols, begin, width;
  DType x_type, cache_type;
};

void check(const Case &t, uint32_t tasks) {
  BatchData batch({{0, 5}, {255, 1}, {254, 4}, {700, 1}, {0, 300}});
  Tensor x(t.x_type, batch.rows(), t.cols, t.cols + 3);
  x.fill_normal(1, batch.live());
  Tensor pages(t.cache_type, (int64_t)batch.pool_blocks * 256, t.width);
  k31_config = {batch.rows(), t.cols, t.begin, t.width, t.cols + 3, batch.columns, t.x_type, t.cache_type};
  launch(k31_entry, Args{x.data(), pages.data(), batch.view()}, tasks);

  std::vector<int> source(pages.rows(), -1); // token of a cache row
  for (int r = 0; r < batch.live(); ++r)
    source[batch.cache_row(batch.row_segment[r], batch.position(r))] = r;
  for (int64_t p = 0; p < pages.rows(); ++p)
    for (int c = 0; c < t.width; ++c) {
      float got = pages.at(p, c);
      if (source[p] < 0 || c < t.begin || c >= t.begin + t.cols) {
        ASSERT_TRUE(std::isnan(got)) << "cache row " << p << ", column " << c << " was written";
        continue;
      }
      float want = x.at(source[p], c - t.begin);
      ASSERT_EQ(got, t.cache_type == DType::bf16 ? round_bf16(want) : want) << "token " << source[p] << ", column " << c;
    }
  EXPECT_TRUE(pages.untouched_outside(pages.rows()));
}

TEST(Append, TypesAndColumnRanges) {
  for (uint32_t tasks : {1u, 2u, 7u, 1000u})
    for (Case t : {Case{576, 0, 576, DType::bf16, DType::bf16}, Case{40, 0, 40, DType::f32, DType::f32},
                   Case{32, 0, 40, DType::f32, DType::bf16}, Case{8, 32, 40, DType::f32, DType::bf16},
                   Case{17, 3, 24, DType::bf16, DType::f32}, Case{1, 0, 1, DType::bf16, DType::bf16}})
      check(t, tasks);
}

TEST(Append, NoLiveRows) {
  BatchData batch({});
  Tensor x(DType::bf16, 3, 16), pages(DType::bf16, 512, 16);
  k31_config = {3, 16, 0, 16, 16, 1, DType::bf16, DType::bf16};
  launch(k31_entry, Args{x.data(), pages.data(), batch.view()}, 3);
  EXPECT_TRUE(pages.untouched_outside(0));
}

} // namespace
