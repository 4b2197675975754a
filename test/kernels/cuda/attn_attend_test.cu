// attn.attend on CUDA against a two-pass softmax in fp64: dense and selected keys, tensor cores and plain products, merged parts.
#include "codegen/kernels/attn/attend.cuh"
#include "test/kernels/common/codes.h"
#include "test/kernels/cuda/batch.h"
#include <functional>

K31_CUDA_KERNEL(attend)
// The launch code that nvcc 13.0 writes names class types of template values by their mangled names.
using _ZN3k317kernels6attend6ConfigE = k31::kernels::attend::Config;
using _ZN3k317kernels6attend4TileE = k31::kernels::attend::Tile;

namespace {
using namespace k31::test;
using namespace k31::kernels::attend;

constexpr int kHeadGap = 7; // a head's query has other values before its shared part

// Queries of fp32 over a cache of bf16, as plans have them.
constexpr Config mixed(Config c) { return c.q_type = DType::f32, c.out_type = DType::f32, c; }
constexpr Config coded(Config c) { return c.cache_type = DType::f8, c; }
// Rows without gaps, of whole 16-byte words.
constexpr Config packed(Config c) {
  c.ld_q = c.ld_out = c.heads * c.latent;
  c.ld_shared = c.heads * c.shared, c.head_shared = c.shared, c.shared_begin = 0;
  return c;
}
constexpr Config config(int heads, int latent, int shared, int top_k, bool lse, DType in = DType::bf16, DType out = DType::bf16) {
  return {.rows = 32,
          .heads = heads,
          .latent = latent,
          .shared = shared,
          .ld_q = heads * latent + 5,
          .ld_shared = heads * (kHeadGap + shared),
          .head_shared = kHeadGap + shared,
          .top_k = top_k,
          .ld_out = heads * latent + 3,
          .blocks = 4,
          .lse = lse,
          .scale = 0.0625f,
          .q_type = in,
          .shared_type = in,
          .cache_type = in,
          .out_type = out,
          .shared_begin = kHeadGap};
}

// `skip`: entries of the indices that are -1, anywhere; every third row has none left. `value`: of the cache, row by row.
template <Config c, Tile t = choose(c)>
void test(
    const std::vector<Batches::Run> &runs, double tolerance, bool skip = false, float size = 1,
    const std::function<double()> &value = [] { return normal(); }) {
  constexpr int H = c.heads, L = c.latent, S = c.shared;
  Batches batch(runs);
  if (batch.columns != c.blocks)
    return fail("the test's table has " + std::to_string(batch.columns) + " columns");
  Tensor q(c.q_type, batch.rows(), H * L, c.ld_q), q_shared(c.shared_type, batch.rows(), c.ld_shared),
      pages(c.cache_type == DType::f8 ? DType::f32 : c.cache_type, batch.pool_rows(), L + S),
      indices(DType::i32, batch.rows(), std::max(1, c.top_k)), out(c.out_type, batch.rows(), H * L, c.ld_out),
      lse(DType::f32, batch.rows(), H), scratch(DType::u8, 1, workspace(c, t));
  q.fill_normal(size, batch.live());
  batch.fill_pool(pages, value);
  Tensor codes(DType::u8, batch.pool_rows(), latent_bytes(L, L + S)); // of which `pages` becomes the values
  if (c.cache_type == DType::f8)
    store_latent_rows(pages, codes, L);
  std::vector<std::vector<int>> seen(batch.live());
  for (int r = 0; r < batch.live(); ++r) {
    for (int h = 0; h < H; ++h)
      for (int d = 0; d < S; ++d) // the gap stays poison
        q_shared.set(r, h * c.head_shared + c.shared_begin + d, normal(size));
    std::vector<int> all(batch.position(r) + 1);
    std::iota(all.begin(), all.end(), 0);
    if (c.top_k) {
      std::shuffle(all.begin(), all.end(), random_engine());
      all.resize(std::min((int)all.size(), c.top_k));
      std::sort(all.begin(), all.end());
      std::vector<int> kept;
      for (int i = 0; i < c.top_k; ++i) {
        const bool gone = i >= (int)all.size() || (skip && (r % 3 == 0 || uniform_int(0, 1)));
        indices.set(r, i, gone ? -1 : all[i]);
        if (!gone)
          kept.push_back(all[i]);
      }
      all = kept;
    }
    seen[r] = all;
  }
  std::vector<std::vector<double>> want(batch.live(), std::vector<double>(H * L)), want_lse(batch.live(), std::vector<double>(H));
  for (int r = 0; r < batch.live(); ++r)
    for (int h = 0; h < H; ++h) {
      std::vector<double> p;
      double top = -INFINITY, total = 0;
      for (int s : seen[r]) {
        const int64_t row = batch.cache_row(batch.row_segment[r], s);
        double score = 0;
        for (int d = 0; d < L; ++d)
          score += q.at(r, h * L + d) * pages.at(row, d);
        for (int d = 0; d < S; ++d)
          score += q_shared.at(r, h * c.head_shared + c.shared_begin + d) * pages.at(row, L + d);
        p.push_back(score * c.scale);
        top = std::max(top, p.back());
      }
      for (double &x : p)
        total += x = std::exp(x - top);
      for (size_t i = 0; i < p.size(); ++i)
        for (int d = 0; d < L; ++d)
          want[r][h * L + d] += p[i] / total * pages.at(batch.cache_row(batch.row_segment[r], seen[r][i]), d);
      want_lse[r][h] = p.empty() ? -INFINITY : top + std::log(total);
    }
  Args args{q.device(), q_shared.device(), c.cache_type == DType::f8 ? codes.device() : pages.device(), batch.view(), {}};
  int i = 0;
  if (c.top_k)
    args.tail[i++] = indices.device();
  args.tail[i++] = out.device();
  if (c.lse)
    args.tail[i++] = lse.device();
  args.tail[i] = scratch.device();
  for (int launches = 0; launches < 2; ++launches) // again: meetings must have come to rest
    start<c, t>(args);
  expect_close(out, batch.live(), [&](int64_t r, int64_t x) { return want[r][x]; }, tolerance);
  if (!c.lse)
    return;
  lse.fetch();
  for (int r = 0; r < batch.live(); ++r)
    for (int h = 0; h < H; ++h)
      if (lse.at(r, h) != want_lse[r][h] &&
          !(std::abs(lse.at(r, h) - want_lse[r][h]) <= tolerance * (1 + std::abs(want_lse[r][h]))))
        return fail("the log-sum-exp of row " + std::to_string(r) + ", head " + std::to_string(h) + " is " +
                    std::to_string(lse.at(r, h)) + ", expected " + std::to_string(want_lse[r][h]));
  if (!lse.untouched_outside(batch.live()))
    fail("lse: wrote outside the live rows");
}

const std::vector<Batches::Run> kRuns = {{0, 9}, {255, 1}, {0, 1}, {254, 4}, {600, 1}, {14, 3}}, kOne = {{599, 1}},
                                kTwo = {{530, 2}};

K31_CUDA_TEST("attn.attend.plain") {
  test<config(4, 32, 8, 0, true, DType::f32, DType::f32)>(kRuns, 1e-5);
  test<config(3, 20, 5, 16, true, DType::f32, DType::f32)>(kRuns, 1e-5);
  test<config(9, 64, 64, 0, false, DType::f32)>(kRuns, 1e-5);
  test<config(3, 48, 0, 17, true, DType::f32, DType::f32)>(kRuns, 1e-5, true);
  test<config(3, 48, 3, 0, true, DType::f32, DType::f32)>(kOne, 1e-5);
  test<config(4, 64, 16, 0, true, DType::f32, DType::f32)>(kRuns, 3e-4, false, 100);
}
K31_CUDA_TEST("attn.attend.products") {
  test<config(12, 512, 64, 0, true)>(kRuns, 6e-3);
  test<config(24, 128, 64, 100, true, DType::bf16, DType::f32)>(kRuns, 6e-3);
  test<config(50, 256, 32, 70, true)>(kRuns, 6e-3, true);
  test<config(96, 512, 64, 150, true)>(kRuns, 6e-3, true);
  test<config(100, 128, 8, 0, true)>(kRuns, 6e-3);
  test<config(2, 512, 64, 64, true)>(kRuns, 6e-3);
  test<packed(config(96, 512, 64, 150, true))>(kRuns, 6e-3, true);
  test<packed(config(50, 256, 32, 70, true))>(kRuns, 6e-3, true);
  test<mixed(config(96, 512, 64, 150, false))>(kRuns, 3e-2, true); // the reference does not round queries
  test<mixed(config(12, 512, 64, 0, true))>(kTwo, 3e-2);
}
K31_CUDA_TEST("attn.attend.codes") {
  test<coded(config(12, 512, 64, 0, true))>(kRuns, 6e-3);
  test<coded(config(96, 512, 64, 150, true))>(kRuns, 6e-3, true);
  test<coded(config(3, 512, 8, 600, true, DType::bf16, DType::f32))>(kOne, 6e-3, true);
  test<coded(config(48, 512, 64, 0, false))>(kTwo, 6e-3);
  test<coded(config(64, 512, 64, 500, true))>({{599, 3}}, 6e-3, true); // two groups of 32
  test<coded(config(4, 512, 0, 100, true))>(kRuns, 6e-3);
  test<packed(coded(config(96, 512, 64, 150, true)))>(kRuns, 6e-3, true);
  test<packed(coded(config(12, 512, 64, 0, true)))>(kRuns, 6e-3);
  test<coded(mixed(config(96, 512, 64, 150, false)))>(kRuns, 3e-2, true);
  test<coded(config(4, 132, 6, 0, true, DType::f32, DType::f32))>(kRuns, 1e-5); // plain products
  test<coded(config(3, 20, 4, 16, true, DType::f32, DType::f32))>(kRuns, 1e-5);
}
// Rows that attend to themselves alone are their latent values, to the bit: every code at every place of a word, in four rows.
// Scales are 1, which the 448 in each 128 makes.
constexpr Config alone() {
  Config c = coded(config(3, 512, 64, 0, false, DType::bf16, DType::f32));
  c.blocks = 2;
  return c;
}
K31_CUDA_TEST("attn.attend.every_code") {
  int at = 0;
  const auto value = [&] {
    const int row = at / 576, column = at++ % 576, code = (column * 37 + row) % 128; // 37 is odd: all of 128
    return column < 512 ? code_value((uint8_t)(std::min(code, 126) | (column / 128 % 2 ? 0x80 : 0))) : 0;
  };
  test<alone()>({{0, 1}, {0, 1}, {0, 1}, {0, 1}}, 0, false, 1, value);
}
K31_CUDA_TEST("attn.attend.parts") {
  test<config(12, 512, 64, 0, true)>(kOne, 6e-3);
  test<config(16, 128, 64, 200, true, DType::bf16, DType::f32)>(kOne, 6e-3, true);
  test<config(3, 128, 0, 0, false)>(kTwo, 6e-3);
  test<config(96, 512, 64, 0, true)>(kTwo, 6e-3), test<config(48, 512, 64, 600, true, DType::bf16, DType::f32)>(kTwo, 6e-3);
}
// Scores that rise from key to key: tops are raised over and over, by more than the slack and by less.
K31_CUDA_TEST("attn.attend.rising") {
  test<config(96, 512, 64, 0, true)>(kTwo, 2e-2, false, 8), test<config(12, 512, 64, 0, true)>(kRuns, 2e-2, false, 40);
  test<coded(config(96, 512, 64, 0, true))>(kTwo, 2e-2, false, 8);
}
// Codes: any bytes but NaN, with scales of 2^-8.
template <Config c> void measure(const std::vector<Batches::Run> &runs, const char *what) {
  Batches batch(runs, 0, c.blocks);
  const int rows = batch.live();
  Tensor q(DType::bf16, rows, c.ld_q), q_shared(DType::bf16, rows, c.ld_shared),
      pages(c.cache_type == DType::f8 ? DType::u8 : DType::bf16, batch.pool_rows(), c.cache_type == DType::f8 ? 656 : 576),
      indices(DType::i32, rows, std::max(1, c.top_k)), out(DType::bf16, rows, c.ld_out),
      scratch(DType::u8, 1, workspace(c, choose(c)));
  q.fill_fast(), q_shared.fill_fast(), pages.fill_fast();
  const float scale = 1.0f / 256;
  for (int64_t r = 0; c.cache_type == DType::f8 && r < pages.rows(); ++r) {
    unsigned char *row = pages.as<unsigned char>() + r * 656;
    for (int b = 0; b < 656; ++b)
      row[b] = (r * 656 + b) * 2654435761u >> 24 & 0xbe;
    for (int s = 0; s < 4; ++s)
      std::memcpy(row + 512 + 4 * s, &scale, 4);
  }
  double keys = 0;
  for (int r = 0; r < rows; ++r) {
    const int n = batch.position(r) + 1;
    for (int i = 0; i < c.top_k; ++i)
      indices.set(r, i, (int64_t)i * n / std::max(1, c.top_k) + uniform_int(0, n / std::max(1, c.top_k) - 1)); // in order
    keys += c.top_k ? c.top_k : n;
  }
  Args args{q.device(), q_shared.device(), pages.device(), batch.view(), {}};
  int i = 0;
  if (c.top_k)
    args.tail[i++] = indices.device();
  args.tail[i++] = out.device(), args.tail[i] = scratch.device();
  double us = time_us([&](int) { start<c>(args); }, rows > 1024 ? 2 : 10);
  report("attend " + std::string(what) + ", " + std::to_string(c.heads) + " heads, " + std::to_string(rows) + " rows", us,
         c.top_k && rows > 1024 ? 0 : (double)keys * c.row_bytes(), keys * c.heads * 1088 * 2);
}
K31_CUDA_TEST("attn.attend.time") {
  if (!timing())
    return;
  constexpr int K = 1024;
#define K31_SIZE(H, TOP_K, CONTEXT)                                                                                              \
  Config{.heads = H,                                                                                                             \
         .ld_q = H * 512,                                                                                                        \
         .ld_shared = H * 64,                                                                                                    \
         .head_shared = 64,                                                                                                      \
         .top_k = TOP_K,                                                                                                         \
         .ld_out = H * 512,                                                                                                      \
         .blocks = (CONTEXT) / 256,                                                                                              \
         .scale = 0.0722f}
  const auto decode = [](int rows, int context) { return std::vector<Batches::Run>((size_t)rows, {context - 1, 1}); };
  for (int rows : {1, 8, 32, 64, 128})
    measure<K31_SIZE(96, 2048, 8 * K)>(decode(rows, 8 * K), "sparse decode");
  for (int rows : {1, 64})
    measure<K31_SIZE(12, 2048, 8 * K)>(decode(rows, 8 * K), "sparse decode");
  measure<K31_SIZE(96, 0, 128 * K)>(decode(1, 128 * K), "dense decode over 131072");
  measure<K31_SIZE(96, 0, 32 * K)>(decode(8, 32 * K), "dense decode over 32768");
  measure<K31_SIZE(96, 2048, 64 * K)>({{60 * K, 4096}}, "sparse prefill over 65536");
  measure<K31_SIZE(96, 2048, 128 * K)>({{124 * K, 4096}}, "sparse prefill over 131072");
  measure<K31_SIZE(12, 2048, 128 * K)>({{124 * K, 4096}}, "sparse prefill over 131072");
  measure<coded(K31_SIZE(96, 2048, 8 * K))>(decode(64, 8 * K), "fp8 sparse decode");
  measure<coded(K31_SIZE(96, 0, 32 * K))>(decode(8, 32 * K), "fp8 dense decode over 32768");
  measure<coded(K31_SIZE(96, 2048, 128 * K))>({{124 * K, 4096}}, "fp8 sparse prefill over 131072");
  measure<coded(K31_SIZE(12, 2048, 128 * K))>({{124 * K, 4096}}, "fp8 sparse prefill over 131072");
}
} // namespace
