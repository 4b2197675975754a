// attn.append on CUDA: every live row lands in its place of the cache, nothing else changes.
#include "codegen/kernels/attn/append.cuh"
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
} // namespace
