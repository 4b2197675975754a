// attn.append on CUDA: every live row lands in its place of the cache, nothing else changes.
#include "codegen/kernels/attn/append.cuh"
#include "test/kernels/common/codes.h"
#include "test/kernels/cuda/batch.h"

K31_CUDA_KERNEL(append)
// The launch code that nvcc 13.0 writes names class types of template values by their mangled names.
using _ZN3k317kernels6append6ConfigE = k31::kernels::append::Config;
using _ZN3k317kernels6append4TileE = k31::kernels::append::Tile;

namespace {
using namespace k31::test;
using namespace k31::kernels::append;

template <Config c> void test() {
  Batches batch({{0, 300}, {255, 1}, {17, 2}, {600, 3}});
  Tensor x(c.x_type, batch.rows(), c.cols, c.ld_x), pages(c.cache_type, batch.pool_rows(), c.width);
  x.fill_normal(1, batch.live());
  std::vector<std::vector<double>> want(batch.pool_rows(), std::vector<double>(c.width, NAN));
  for (int r = 0; r < batch.live(); ++r)
    for (int i = 0; i < c.cols; ++i)
      want[batch.cache_row(batch.row_segment[r], batch.position(r))][c.begin + i] =
          c.cache_type == DType::bf16 ? round_bf16((float)x.at(r, i)) : x.at(r, i);
  if (batch.columns != c.blocks)
    return fail("the test's table has another width");
  start<c>({x.device(), pages.device(), batch.view()});
  pages.fetch();
  for (int64_t r = 0; r < batch.pool_rows(); ++r)
    for (int i = 0; i < c.width; ++i)
      if (pages.at(r, i) != want[r][i] && !(std::isnan(want[r][i]) && std::isnan(pages.at(r, i))))
        return fail("row " + std::to_string(r) + ", column " + std::to_string(i) + " is " + std::to_string(pages.at(r, i)) +
                    ", expected " + std::to_string(want[r][i]));
  if (!pages.untouched_outside(batch.pool_rows()))
    fail("wrote outside the pool");
}

K31_CUDA_TEST("attn.append.vectors") {
  test<Config{.rows = 309, .cols = 576, .width = 576, .ld_x = 576, .blocks = 4}>();
  test<Config{.rows = 309, .cols = 64, .begin = 512, .width = 576, .ld_x = 80, .blocks = 4}>();
  test<Config{.rows = 309, .cols = 128, .width = 128, .ld_x = 128, .blocks = 4, .cache_type = DType::f32}>();
}
K31_CUDA_TEST("attn.append.scalars") {
  test<Config{.rows = 309, .cols = 5, .begin = 3, .width = 11, .ld_x = 7, .blocks = 4}>();
  test<Config{.rows = 309, .cols = 20, .width = 20, .ld_x = 21, .blocks = 4, .x_type = DType::f32, .cache_type = DType::f32}>();
  test<Config{.rows = 309, .cols = 20, .width = 20, .ld_x = 21, .blocks = 4, .x_type = DType::f32}>();
}

// The codes of all rows, or the rest of latent rows; the bytes are those of the definition.
template <Config c> void test_codes(float scale = 1) {
  Batches batch({{0, 300}, {255, 1}, {17, 2}, {600, 3}});
  Tensor x(c.x_type, batch.rows(), c.width, c.ld_x), values(DType::f32, batch.pool_rows(), c.width);
  x.fill([=] { return normal(scale) * (uniform_int(0, 3) ? 1 : 1e-4f); }, batch.live());
  for (int i = 0; i < c.width; ++i)
    x.set(1, i, 0), x.set(2, i, i == c.codes / 2 ? NAN : 1);
  for (int r = 0; r < batch.live(); ++r)
    for (int i = 0; i < c.width; ++i)
      values.set(batch.cache_row(batch.row_segment[r], batch.position(r)), i, x.at(r, i));
  const int64_t rows = (c.cache_type == DType::i8) ? batch.pool_blocks : batch.pool_rows();
  const int64_t bytes = (c.cache_type == DType::i8) ? 256 * (c.codes + 4) : latent_bytes(c.codes, c.width);
  Tensor expected(DType::u8, rows, bytes), got(DType::u8, rows, bytes);
  if ((c.cache_type == DType::i8))
    store_keys(values, expected);
  else
    store_latent_rows(values, expected, c.codes);
  start<c>({x.device<char>() + c.begin * k31::kernels::bytes_of_type(c.x_type), got.device(), batch.view()});
  got.fetch();
  const int rest = latent_bytes(c.codes, c.codes);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < bytes; ++i) {
      const double want = (c.cache_type == DType::i8) || (c.begin == 0) == (i < rest) ? expected.at(r, i) : 255;
      if (got.at(r, i) != want)
        return fail("row " + std::to_string(r) + ", byte " + std::to_string(i) + " is " + std::to_string(got.at(r, i)) +
                    ", expected " + std::to_string(want));
    }
  if (!got.untouched_outside(rows))
    fail("wrote outside the pool");
}
constexpr Config coded(int begin, int cols, int width, int codes, bool keys = false, DType x = DType::bf16) {
  return {.rows = 309,
          .cols = cols,
          .begin = begin,
          .width = width,
          .ld_x = width + 5,
          .blocks = 4,
          .x_type = x,
          .cache_type = keys ? DType::i8 : DType::f8,
          .codes = codes};
}
K31_CUDA_TEST("attn.append.codes") {
  test_codes<coded(0, 512, 576, 512)>();
  test_codes<coded(512, 64, 576, 512)>();
  test_codes<coded(0, 512, 576, 512, false, DType::f32)>(1e-6f);
  test_codes<coded(0, 132, 150, 132)>(1e30f);
  test_codes<coded(132, 18, 150, 132, false, DType::f32)>();
  test_codes<coded(0, 128, 128, 128, true)>();
  test_codes<coded(0, 18, 18, 18, true, DType::f32)>(100);
  test_codes<coded(0, 256, 256, 256, true)>();
}
} // namespace
