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

// All values in one append, or the codes and the rest apart; what is not asked for stays poison.
void check_codes(int codes, int width, DType x_type, bool keys, uint32_t tasks, float scale = 1) {
  SCOPED_TRACE(testing::Message() << codes << " codes of " << width << (keys ? ", keys" : ""));
  BatchData batch({{0, 5}, {255, 1}, {254, 4}, {700, 1}, {0, 300}});
  Tensor x(x_type, batch.rows(), width, width + 3);
  x.fill([=] { return normal(scale) * (uniform_int(0, 3) ? 1 : 1e-4f); }, batch.live());
  for (int c = 0; c < width; ++c) // a row of zeros and a row with a NaN
    x.set(1, c, c % 2 ? -0.0f : 0.0f), x.set(2, c, c == codes / 2 ? NAN : 1);
  const int64_t rows = (int64_t)batch.pool_blocks * 256;
  Tensor values(DType::f32, rows, width), expected, got;
  for (int r = 0; r < batch.live(); ++r)
    for (int c = 0; c < width; ++c)
      values.set(batch.cache_row(batch.row_segment[r], batch.position(r)), c, x.at(r, c));
  expected = keys ? coded_key_pool(values) : coded_latent_pool(values, codes);
  got = Tensor(DType::u8, expected.rows(), expected.cols());
  for (int begin : {0, codes}) {
    if (begin == width)
      continue;
    k31_config = {batch.rows(), begin ? width - codes : codes, begin, width, width + 3, batch.columns,
                  x_type,       keys ? DType::i8 : DType::f8,  codes};
    launch(k31_entry, Args{(char *)x.data() + begin * element_bytes(x_type), got.data(), batch.view()}, tasks);
  }
  for (int64_t r = 0; r < got.rows(); ++r)
    for (int64_t c = 0; c < got.cols(); ++c)
      ASSERT_EQ(got.at(r, c), expected.at(r, c)) << "row " << r << ", byte " << c;
  EXPECT_TRUE(got.untouched_outside(got.rows()));
}

TEST(Append, Codes) {
  for (uint32_t tasks : {1u, 7u})
    for (DType type : {DType::f32, DType::bf16}) {
      check_codes(512, 576, type, false, tasks);
      check_codes(132, 150, type, false, tasks, 1e-6f);
      check_codes(32, 40, type, false, tasks, 1e30f);
      check_codes(128, 128, type, true, tasks);
      check_codes(20, 20, type, true, tasks, 100);
      check_codes(256, 256, type, true, tasks);
    }
}

// Every code is its own nearest, and values between two codes go to the nearer one, ties to the even one.
TEST(Append, CodesAreRoundedToNearest) {
  BatchData batch({{0, 127}});
  Tensor x(DType::f32, batch.rows(), 4), got(DType::u8, batch.pool_blocks * 256, 8); // four codes and a scale
  for (int code = 0; code < 127; ++code) {
    const double low = code_value((uint8_t)code), high = code < 126 ? code_value((uint8_t)(code + 1)) : 448;
    x.set(code, 0, 448), x.set(code, 1, (float)-low), x.set(code, 2, (float)((low + high) / 2));
    x.set(code, 3, std::nextafter((float)((low + high) / 2), 1000.0f));
  }
  k31_config = {batch.rows(), 4, 0, 4, 4, batch.columns, DType::f32, DType::f8, 4};
  launch(k31_entry, Args{x.data(), got.data(), batch.view()}, 1);
  for (int code = 0; code < 126; ++code) {
    const int64_t at = batch.cache_row(0, code);
    const int even = code % 2 ? code + 1 : code;
    EXPECT_EQ(got.at(at, 0), 126);
    EXPECT_EQ(got.at(at, 1), code | 0x80);
    EXPECT_EQ(got.at(at, 2), even);
    EXPECT_EQ(got.at(at, 3), code + 1);
  }
}

TEST(Append, NoLiveRows) {
  BatchData batch(std::vector<BatchData::Run>{});
  Tensor x(DType::bf16, 3, 16), pages(DType::bf16, 512, 16);
  k31_config = {3, 16, 0, 16, 16, 1, DType::bf16, DType::bf16};
  launch(k31_entry, Args{x.data(), pages.data(), batch.view()}, 3);
  EXPECT_TRUE(pages.untouched_outside(0));
}

} // namespace
