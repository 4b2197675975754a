// The estimates that choose the tiles of CUDA products, beside what one H200 measured (docs/performance.md).
#include "codegen/kernels/moe/grouped_linear.tile.h"
#include "codegen/kernels/nn/head_linear.tile.h"
#include "codegen/kernels/nn/linear.tile.h"
#include <gtest/gtest.h>
#include <tuple>

namespace k31::kernels {
namespace {

linear::Config product(int32_t rows, int32_t n, int32_t k) {
  linear::Config c;
  c.rows = rows, c.n = n, c.k = c.ld_x = k;
  return c;
}

struct Measured {
  int32_t rows, n, k;
  double us;
  ProductForm form;
  int32_t bn, split = 1;
};
// Products that were timed, with the tile that they were timed with.
constexpr Measured kMeasured[] = {
    {1, 12288, 7168, 44.2, kThin, 16},       {8, 12288, 7168, 44.9, kThin, 16},      {16, 12288, 7168, 45.5, kMapped, 96},
    {32, 12288, 7168, 46.0, kMapped, 96},    {64, 12288, 7168, 45.6, kMapped, 96},   {128, 12288, 7168, 48.3, kMapped, 96},
    {256, 12288, 7168, 66.4, kMapped, 192},  {64, 6144, 7168, 25.2, kMapped, 64},    {64, 1536, 7168, 10.4, kMapped, 64, 4},
    {64, 12, 7168, 5.3, kMapped, 16, 8},     {64, 576, 7168, 6.5, kMapped, 48, 8},   {64, 896, 7168, 8.9, kMapped, 48, 5},
    {64, 2304, 1536, 6.1, kMapped, 48, 2},   {64, 3584, 7168, 18.7, kMapped, 64, 2}, {64, 4608, 7168, 20.6, kMapped, 48},
    {8192, 12288, 7168, 2250, kMapped, 256}, {8192, 7168, 12288, 2180, kMapped, 256}};

TEST(CudaCosts, MeasuredProductsKeepTheirTiles) {
  for (const Measured &m : kMeasured) {
    const linear::Config c = product(m.rows, m.n, m.k);
    const ProductTile tile = linear::choose(c);
    EXPECT_EQ(tile.form, m.form) << m.rows << " x " << m.n;
    EXPECT_EQ(tile.bn, m.bn) << m.rows << " x " << m.n;
    EXPECT_EQ(tile.split, m.split) << m.rows << " x " << m.n;
    EXPECT_NEAR(linear::cost(c, tile).seconds() * 1e6 / m.us, 1, 0.15) << m.rows << " x " << m.n;
  }
}

TEST(CudaCosts, TheFormThatWasSlowerIsEstimatedSlower) {
  // 16 rows: 52 us by the thin form.
  const double thin = product_cost(thin_tile(16, 4, false), 16, 12288, 7168).seconds();
  EXPECT_NEAR(thin * 1e6, 52, 4);
  EXPECT_LT(linear::cost(product(16, 12288, 7168), mapped_tile(16, 96)).seconds(), thin);
}

TEST(CudaCosts, TheChoiceIsTheCheapestCandidate) {
  for (int32_t rows : {1, 8, 9, 16, 64, 100, 512, 4096})
    for (int32_t n : {64, 576, 2112, 6144, 20480})
      for (int32_t pair : {0, 1}) {
        linear::Config c = product(rows, n, 7168);
        c.pair = pair;
        const double chosen = linear::cost(c, linear::choose(c)).seconds();
        const auto all = linear::candidates(c);
        ASSERT_GT(all.count, 3);
        ASSERT_LE(all.count, all.kMost);
        for (int i = 0; i < all.count; ++i) {
          EXPECT_LE(chosen, linear::cost(c, all.tile[i]).seconds());
          EXPECT_EQ(all.tile[i].bn % (pair ? 32 : 16), 0);
          EXPECT_LE(all.tile[i].smem(), kMaxSharedMemory);
        }
      }
}

TEST(CudaCosts, OtherTypesHaveThePlainFormAlone) {
  linear::Config c = product(64, 12288, 7168);
  c.x_type = DType::f32;
  EXPECT_EQ(linear::candidates(c).count, 1);
  EXPECT_EQ(linear::choose(c).form, kPlain);
}

// The sums of attention by head, fp32 by bf16: 512 columns to 128.
head_linear::Config latent_sums(int32_t rows, int32_t heads) {
  head_linear::Config c;
  c.rows = rows, c.heads = heads, c.in = c.head_x = 512, c.out = 128, c.ld_x = heads * 512, c.head_w = 131072,
  c.ld_out = heads * 128;
  c.x_type = DType::f32;
  return c;
}

TEST(CudaCosts, HeadsOfFp32GoByTensorCores) {
  for (int32_t rows : {1, 4, 64, 100, 256, 8192})
    for (int32_t heads : {3, 12, 96})
      for (int32_t transposed : {0, 1}) {
        head_linear::Config c = latent_sums(rows, heads);
        c.transposed = transposed;
        const ProductTile chosen = head_linear::choose(c);
        EXPECT_EQ(chosen.form, kWide);
        EXPECT_EQ(chosen.x_bytes, 4);
        const auto all = head_linear::candidates(c);
        ASSERT_GE(all.count, 1);
        for (int i = 0; i < all.count; ++i) {
          const ProductTile &t = all.tile[i];
          EXPECT_LE(head_linear::cost(c, chosen).seconds(), head_linear::cost(c, t).seconds());
          EXPECT_LE(t.smem(), kMaxSharedMemory) << t.bm << " x " << t.bn;
          EXPECT_LE(t.threads(), 1024);
          if (t.ahead) // a block takes one tile
            EXPECT_GE((int64_t)head_linear::grid(c, t).z * t.bm, rows);
          if (transposed) // columns of W come in blocks of 64
            EXPECT_EQ(t.bn % 64, 0);
        }
      }
}

// Measured with these tiles.
TEST(CudaCosts, HeadsOfFp32KeepTheirTiles) {
  struct {
    int32_t rows, heads, bm, bn, stages;
    double us;
  } measured[] = {{1, 12, 16, 32, 9, 3.2},      {16, 12, 16, 32, 9, 3.3},    {64, 12, 16, 32, 9, 4.2},
                  {1, 48, 16, 32, 9, 4.7},      {1, 96, 16, 32, 5, 5.6},     {16, 96, 16, 32, 5, 6.0},
                  {64, 48, 32, 32, 5, 8.8},     {256, 96, 64, 128, 3, 28.5}, {2048, 12, 64, 128, 3, 27.4},
                  {8192, 12, 64, 128, 3, 94.3}, {8192, 96, 64, 128, 3, 795}};
  for (const auto &m : measured) {
    const head_linear::Config c = latent_sums(m.rows, m.heads);
    const ProductTile t = head_linear::choose(c);
    EXPECT_EQ(t.bm, m.bm) << m.rows << " x " << m.heads;
    EXPECT_EQ(t.bn, m.bn) << m.rows << " x " << m.heads;
    EXPECT_EQ(t.stages, m.stages) << m.rows << " x " << m.heads;
    EXPECT_NEAR(head_linear::cost(c, t).seconds() * 1e6 / m.us, 1, 0.25) << m.rows << " x " << m.heads;
  }
}

// In microseconds, fp32 x by bf16 W and bf16 by bf16.
TEST(CudaCosts, ThePlainFormIsSlow) {
  for (auto [rows, heads, us] :
       {std::tuple{1, 12, 45}, {64, 12, 49}, {64, 24, 52}, {64, 96, 192}, {256, 12, 89}, {8192, 12, 2712}, {8192, 96, 23229}})
    EXPECT_NEAR(head_linear::cost(latent_sums(rows, heads), ProductTile()).seconds() * 1e6 / us, 1, 0.15)
        << rows << " x " << heads;
  head_linear::Config c = latent_sums(64, 12);
  c.w_type = DType::f32; // which leaves the plain form
  EXPECT_EQ(head_linear::choose(c).form, kPlain);
  EXPECT_NEAR(plain_cost(64, 12, 7168, 2, 2).seconds() * 1e6 / 376, 1, 0.1);
}

TEST(CudaCosts, TheChoiceOfExpertsIsTheCheapestCandidate) {
  for (int32_t rows : {1, 16, 900, 33153, 131072})
    for (int32_t experts : {1, 56, 257, kDecodedExperts})
      for (int32_t mxfp4 : {0, 1}) {
        grouped_linear::Config c;
        c.rows = rows, c.experts = experts, c.n = 272, c.k = c.ld_x = 224, c.mxfp4 = mxfp4;
        const double chosen = grouped_linear::cost(c, grouped_linear::choose(c)).seconds();
        const auto all = grouped_linear::candidates(c);
        ASSERT_EQ(all.count, mxfp4 ? 4 : 5);
        for (int i = 0; i < all.count; ++i) {
          const ProductTile &t = all.tile[i];
          EXPECT_LE(chosen, grouped_linear::cost(c, t).seconds());
          EXPECT_LE(t.smem(), kMaxSharedMemory) << "bm " << t.bm;
          EXPECT_EQ(t.form == kDecoded, mxfp4 && t.bm > 16);
          EXPECT_GE(t.stages, t.form == kThin ? 1 : 2); // copies and products at once
          // Blocks of the decoded form go on from tile to tile: no more of them than run at once.
          const Grid grid = grouped_linear::grid(c, t);
          EXPECT_GE(grid.x, 1);
          EXPECT_LE(grid.x, t.form == kDecoded ? kMultiprocessors : ceil_div(c.n, t.bn));
        }
      }
}

// A block of the decoded form keeps the offsets of all experts: more of them than fit have the thin form alone.
TEST(CudaCosts, TooManyExpertsForTheDecodedForm) {
  grouped_linear::Config c;
  c.rows = 1 << 20, c.experts = kDecodedExperts, c.n = 6144, c.k = c.ld_x = 3584;
  EXPECT_EQ(grouped_linear::choose(c).form, kDecoded);
  ++c.experts;
  EXPECT_EQ(grouped_linear::choose(c).form, kThin);
  EXPECT_EQ(grouped_linear::candidates(c).count, 2);
}

// 1024 choices of 64 tokens over 8 ranks of 112 experts: 292 us for the 82 that were hit, of packed weights 6144 x 3584.
TEST(CudaCosts, Experts) {
  grouped_linear::Config c;
  c.rows = 1024, c.experts = 82, c.ranks = 8, c.n = 6144, c.k = c.ld_x = 3584;
  const ProductTile tile = grouped_linear::choose(c);
  EXPECT_EQ(tile.form, kThin);
  EXPECT_EQ(tile.bm, 8);
  EXPECT_NEAR(grouped_linear::cost(c, tile).seconds() * 1e6 / 292, 1, 0.25);
  // Few rows: memory binds. More: one pass over an expert's weights, which multiplies no more rows than there are.
  for (auto [rows, bm] : {std::pair{4, 8}, {9, 48}, {15, 48}, {30, 48}, {64, 96}}) {
    c.rows = rows * 8 * 82;
    EXPECT_EQ(grouped_linear::choose(c).bm, bm) << rows;
    EXPECT_EQ(grouped_linear::choose(c).form, bm > 16 ? kDecoded : kThin) << rows;
  }
  const auto seconds = [&](int rows) { // of an expert
    c.rows = rows * 8 * 82;
    return grouped_linear::cost(c, grouped_linear::choose(c)).seconds();
  };
  EXPECT_LT(seconds(30), 0.75 * seconds(64));
  EXPECT_LT(seconds(100), 1.5 * seconds(80)); // two tiles of 56 rows each, not of 96
  // 9, 18, 37, 73 and 146 rows each of 112 experts.
  for (auto [tokens, microseconds] : {std::pair{512, 517}, {1024, 531}, {2048, 633}, {4096, 865}, {8192, 1743}}) {
    c.rows = 16 * tokens, c.experts = 112;
    EXPECT_NEAR(grouped_linear::cost(c, grouped_linear::choose(c)).seconds() * 1e6 / microseconds, 1, 0.2) << tokens;
  }
  c.n = 3584, c.k = c.ld_x = 3072; // the second product
  for (auto [tokens, microseconds] : {std::pair{2048, 333}, {4096, 450}, {8192, 876}}) {
    c.rows = 16 * tokens;
    EXPECT_NEAR(grouped_linear::cost(c, grouped_linear::choose(c)).seconds() * 1e6 / microseconds, 1, 0.2) << tokens;
  }
}

} // namespace
} // namespace k31::kernels
