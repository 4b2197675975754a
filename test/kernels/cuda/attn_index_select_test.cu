// attn.index_select on CUDA: scores of small integers are exact in bf16 products, so the selection is compared exactly, ties too;
// real values are compared by their scores in fp64.
#include "codegen/kernels/attn/index_select.cuh"
#include "test/kernels/common/codes.h"
#include "test/kernels/cuda/batch.h"

K31_CUDA_KERNEL(index_select)
// The launch code that nvcc 13.0 writes names class types of template values by their mangled names.
using _ZN3k317kernels12index_select6ConfigE = k31::kernels::index_select::Config;
using _ZN3k317kernels12index_select4TileE = k31::kernels::index_select::Tile;

namespace {
using namespace k31::test;
using namespace k31::kernels::index_select;

enum class Draw { integers, ties, reals, sampled };

// Tolerance: 0 asks for the exact selection.
template <Config c, Tile t = choose(c)> void test(const std::vector<Batches::Run> &runs, Draw draw, double tolerance = 0) {
  constexpr int H = c.heads, D = c.head_dim;
  Batches batch(runs);
  Tensor q(c.q_type, batch.rows(), H * D, c.ld_q), w(c.w_type, batch.rows(), H, c.ld_w),
      pages(c.cache_type == DType::i8 ? DType::f32 : c.cache_type, batch.pool_rows(), D);
  Tensor codes(DType::u8, batch.pool_blocks, 256 * (D + 4)); // of which `pages` becomes the values
  Tensor out(DType::i32, batch.rows(), c.top_k), scratch(DType::u8, 1, workspace(c, t));
  const int span = draw == Draw::ties ? 1 : 3;
  auto value = [&]() -> double { return draw == Draw::reals ? normal() : uniform_int(-span, span); };
  q.fill(value, batch.live()), w.fill(value, batch.live()), batch.fill_pool(pages, value);
  for (int g = 0; draw == Draw::sampled && g < batch.live_segments(); ++g) { // only what a sample of sixteenths sees is large
    const int n = batch.position(batch.segments[g].row_begin) + 1, parts = std::max(1, t.blocks / batch.live()),
              length = ((n + parts - 1) / parts + 127) / 128 * 128;
    for (int s = 0; s < n; ++s)
      if (s % length / 128 % 16 != s % length / 2048 % 16)
        for (int d = 0; d < D; ++d)
          pages.set(batch.cache_row(g, s), d, pages.at(batch.cache_row(g, s), d) > 0);
  }
  if (c.cache_type == DType::i8) {
    for (int r = 0; r < batch.live() && draw != Draw::reals; ++r) // scales become 1: a value of 127, which no query looks at
      for (int h = 0; h < H; ++h)
        q.set(r, h * D, 0);
    for (int64_t r = 0; r < batch.pool_rows() && draw != Draw::reals; ++r)
      if (!std::isnan(pages.at(r, 0)))
        pages.set(r, 0, 127);
    store_keys(pages, codes);
  }
  if (batch.columns != c.blocks)
    return fail("the test's table has " + std::to_string(batch.columns) + " columns");
  for (int launches = 0; launches < 2; ++launches) { // again: barriers and histograms must have come to rest
    start<c, t>({q.device(), w.device(), c.cache_type == DType::i8 ? codes.device() : pages.device(), batch.view(),
                 out.device<int32_t>(), scratch.device()});
  }
  out.fetch();
  if (!out.untouched_outside(batch.live()))
    fail("wrote outside the live rows");
  std::vector<double> keys(batch.pool_rows() * D), query(H * D);
  for (size_t i = 0; i < keys.size(); ++i)
    keys[i] = pages.at(i / D, i % D);
  for (int r = 0; r < batch.live(); ++r) {
    const int n = batch.position(r) + 1;
    std::vector<double> score(n, 0.0);
    for (int i = 0; i < H * D; ++i)
      query[i] = q.at(r, i);
    for (int s = 0; s < n; ++s) {
      const double *key = &keys[batch.cache_row(batch.row_segment[r], s) * D];
      for (int h = 0; h < H; ++h) {
        double dot = 0;
        for (int d = 0; d < D; ++d)
          dot += query[h * D + d] * key[d];
        score[s] += std::max(0.0, dot * c.scale) * w.at(r, h) * c.head_scale;
      }
    }
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return score[a] > score[b]; });
    const int taken = std::min(n, c.top_k);
    const double lowest = score[order[taken - 1]];
    std::sort(order.begin(), order.begin() + taken);
    for (int i = 0, last = -1; i < c.top_k; ++i) {
      const int got = (int)out.at(r, i);
      const std::string where = "row " + std::to_string(r) + ", entry " + std::to_string(i) + " is " + std::to_string(got);
      if (i >= taken) {
        if (got != -1)
          return fail(where + ", expected -1");
      } else if (tolerance == 0) {
        if (got != order[i])
          return fail(where + ", expected " + std::to_string(order[i]));
      } else if (got <= last || got >= n || score[got] < lowest - tolerance) {
        return fail(where + ", no selected position");
      }
      last = got;
    }
  }
}

const std::vector<Batches::Run> kRuns = {{0, 19}, {255, 1}, {0, 1}, {254, 4}, {600, 1}, {700, 20}, {14, 3}};

constexpr Config config(int heads, int dim, int top_k, DType type = DType::bf16, bool runs = false) {
  return {.rows = runs ? 192 : 52,
          .heads = heads,
          .head_dim = dim,
          .top_k = top_k,
          .max_context = 1024,
          .ld_q = heads * dim + 8,
          .ld_w = heads + 1,
          .blocks = 4,
          .scale = 0.25f,
          .head_scale = 0.5f,
          .q_type = type,
          .cache_type = type,
          .runs = runs};
}
constexpr Config coded(Config c) { return c.cache_type = DType::i8, c; }
constexpr Tile few_rows(Tile t, int rows, int teams) {
  t.rows = rows, t.teams = teams;
  return t;
}

K31_CUDA_TEST("attn.index_select.exact") {
  test<config(32, 128, 64)>(kRuns, Draw::integers);
  test<config(5, 32, 16)>(kRuns, Draw::integers);
  test<config(8, 64, 700)>(kRuns, Draw::integers);
  test<config(32, 128, 64), few_rows(choose(config(32, 128, 64)), 16, 1)>(kRuns, Draw::integers);
  test<config(16, 64, 100), few_rows(choose(config(16, 64, 100)), 4, 2)>(kRuns, Draw::integers);
}
K31_CUDA_TEST("attn.index_select.ties") {
  test<config(2, 32, 64)>(kRuns, Draw::ties);
  test<config(1, 32, 300)>(kRuns, Draw::ties);
  test<config(2, 32, 33), few_rows(choose(config(2, 32, 33)), 1, 3)>(kRuns, Draw::ties);
}
K31_CUDA_TEST("attn.index_select.plain") {
  test<config(3, 20, 64, DType::f32)>(kRuns, Draw::integers);
  test<config(4, 48, 64, DType::bf16)>(kRuns, Draw::ties);
  test<config(4, 128, 64, DType::f32)>(kRuns, Draw::reals, 1e-4);
}
K31_CUDA_TEST("attn.index_select.reals") { test<config(32, 128, 100)>(kRuns, Draw::reals, 1e-3); }
K31_CUDA_TEST("attn.index_select.codes") {
  test<coded(config(32, 128, 64))>(kRuns, Draw::integers);
  test<coded(config(5, 32, 16))>(kRuns, Draw::ties);
  test<coded(config(3, 20, 64, DType::f32))>(kRuns, Draw::integers);
  test<coded(config(32, 128, 100))>(kRuns, Draw::reals, 1e-3);
}
// Many rows of a segment: more of them than blocks, groups that end early, a second row block whose rows blocks share.
const std::vector<Batches::Run> kLong = {{0, 19}, {700, 60}, {254, 4}, {600, 77}, {760, 5}, {90, 1}};
K31_CUDA_TEST("attn.index_select.wide") {
  static_assert(choose(config(32, 128, 64, DType::bf16, true)).wide && choose(config(5, 64, 64, DType::bf16, true)).wide);
  test<config(32, 128, 64, DType::bf16, true)>(kLong, Draw::integers);
  test<config(20, 128, 700, DType::bf16, true)>(kLong, Draw::integers);
  test<config(5, 64, 16, DType::bf16, true)>(kLong, Draw::ties);
  test<config(64, 64, 33, DType::bf16, true)>(kLong, Draw::integers);
  test<config(32, 128, 100, DType::bf16, true)>(kLong, Draw::reals, 1e-3);
  test<coded(config(32, 128, 64, DType::bf16, true))>(kLong, Draw::integers);
  test<coded(config(12, 64, 64, DType::bf16, true))>(kLong, Draw::ties);
  test<coded(config(32, 128, 100, DType::bf16, true))>(kLong, Draw::reals, 1e-3);
  test<config(32, 128, 64, DType::bf16, true)>(kRuns, Draw::integers); // all rows in one row block
}
// Longer rows, shared by blocks or not: what can be selected fits into shared memory; it does not (zeros tie, thousands are
// taken); there is less of it than a sample tells.
constexpr Config longer(Config c) { return c.blocks = 73, c.max_context = 256 * c.blocks, c; }
K31_CUDA_TEST("attn.index_select.kept") {
  const std::vector<Batches::Run> few = {{18200, 20}, {5000, 3}, {150, 2}}, many = {{18200, 90}};
  for (const auto &runs : {few, many}) {
    test<longer(config(4, 64, 200, DType::bf16, true))>(runs, Draw::integers);
    test<longer(config(1, 64, 12500, DType::bf16, true))>(runs, Draw::ties);
    test<longer(config(1, 64, 1000, DType::bf16, true))>(runs, Draw::sampled);
    test<coded(longer(config(4, 64, 200, DType::bf16, true)))>(runs, Draw::integers);
  }
}

// Pages of made-up codes, all of one scale.
void fill_codes(Tensor &pages, int64_t count, int dim, float scale) {
  auto *bytes = pages.as<unsigned char>();
  for (int64_t page = 0; page < count; ++page, bytes += 256 * (dim + 4)) {
    for (int i = 0; i < 256 * dim; ++i)
      bytes[i] = (page * 256 * dim + i) * 2654435761u >> 24 & 0xfe;
    for (int i = 0; i < 256; ++i)
      std::memcpy(bytes + 256 * dim + 4 * i, &scale, 4);
  }
}

// Keys that point where the query of a head looks, at several depths of a long context of noise: all of them are selected, by one
// row and by the last rows of a prompt.
template <Config c, Tile t = choose(c)> void planted(int rows) {
  constexpr int H = c.heads, D = c.head_dim;
  constexpr bool kCodes = c.cache_type == DType::i8;
  Batches batch({{c.max_context - rows, rows}}, 0, c.blocks);
  Tensor q(DType::bf16, rows, H * D), w(DType::f32, rows, H), out(DType::i32, rows, c.top_k),
      scratch(DType::u8, 1, workspace(c, t));
  Tensor pages(kCodes ? DType::u8 : DType::bf16, kCodes ? batch.pool_blocks : batch.pool_rows(), kCodes ? 256 * (D + 4) : D);
  w.fill([] { return 0.5 + std::abs(normal()); });
  for (int i = 0; i < H * D; ++i) { // rows look almost the same way
    const float base = normal();
    for (int r = 0; r < rows; ++r)
      q.set(r, i, base + normal(0.1f));
  }
  if (kCodes)
    fill_codes(pages, batch.pool_blocks, D, 1.0f / 4096);
  else
    pages.fill_fast(0.05f);
  Tensor key(DType::f32, 1, D), code(DType::u8, 1, D + 4);
  for (int d = 0; d < D; ++d)
    key.set(0, d, 4 * q.at(0, d));
  store_codes(key, 0, 0, D, code, 0, 0, D, true);
  std::vector<int> depths;
  for (int percent : {0, 1, 10, 25, 50, 75, 90, 99})
    depths.push_back((int)((int64_t)(c.max_context - rows) * percent / 100));
  depths.push_back(c.max_context - rows);
  for (int position : depths) {
    const int64_t row = batch.cache_row(0, position);
    for (int d = 0; d < D; ++d)
      kCodes ? pages.set(row / 256, row % 256 * D + d, code.at(0, d)) : pages.set(row, d, key.at(0, d));
    for (int b = 0; kCodes && b < 4; ++b)
      pages.set(row / 256, 256 * D + row % 256 * 4 + b, code.at(0, D + b));
  }
  start<c, t>({q.device(), w.device(), pages.device(), batch.view(), out.device<int32_t>(), scratch.device()});
  out.fetch();
  for (int r = 0; r < rows; ++r) {
    std::vector<int> found;
    for (int i = 0; i < c.top_k; ++i)
      found.push_back((int)out.at(r, i));
    if (found.front() < 0 || !std::is_sorted(found.begin(), found.end()) ||
        std::adjacent_find(found.begin(), found.end()) != found.end())
      return fail("row " + std::to_string(r) + ": the positions do not ascend");
    for (int position : depths)
      if (!std::binary_search(found.begin(), found.end(), position))
        return fail("row " + std::to_string(r) + ": the key planted at " + std::to_string(position) + " of " +
                    std::to_string(c.max_context) + " is not selected");
  }
  printf("    %zu keys planted in %d positions selected by %d rows, %s\n", depths.size(), c.max_context, rows,
         kCodes ? "codes" : "bf16");
}
// K3.1's indexer.
constexpr Config sized(int context, int rows, bool runs, DType type = DType::bf16) {
  return {.rows = rows,
          .heads = 32,
          .head_dim = 128,
          .top_k = 2048,
          .max_context = context,
          .ld_q = 4096,
          .ld_w = 32,
          .blocks = context / 256,
          .scale = 0.125f,
          .head_scale = 0.25f,
          .cache_type = type,
          .runs = runs};
}
template <int context> void planted_at() {
  planted<sized(context, 1, false)>(1), planted<sized(context, 64, true)>(64);
  planted<sized(context, 1, false, DType::i8)>(1), planted<sized(context, 64, true, DType::i8)>(64);
}
K31_CUDA_TEST("attn.index_select.planted") { planted_at<127 << 10>(), planted_at<512 << 10>(), planted_at<1 << 20>(); }

template <Config c> void measure(const std::vector<Batches::Run> &runs) {
  Batches batch(runs, 0, c.blocks);
  Tensor q(DType::bf16, batch.rows(), 4096), w(DType::f32, batch.rows(), 32);
  Tensor pages(c.cache_type == DType::i8 ? DType::u8 : DType::bf16, batch.pool_rows(), c.cache_type == DType::i8 ? 132 : 128);
  Tensor out(DType::i32, batch.rows(), c.top_k), scratch(DType::u8, 1, workspace(c, choose(c)));
  q.fill_fast(), w.fill_fast(), pages.fill_fast();
  if (c.cache_type == DType::i8)
    fill_codes(pages, batch.pool_blocks, 128, 1.0f / 256);
  Args args{q.device(), w.device(), pages.device(), batch.view(), out.device<int32_t>(), scratch.device()};
  double us = time_us([&](int) { start<c>(args); }, 5), keys = 0, pairs = 0;
  for (const auto &run : runs)
    keys += run.start + run.length, pairs += (double)run.length * (run.start + run.length);
  report(std::string(c.cache_type == DType::i8 ? "fp8 " : "") + "index_select " + std::to_string(batch.live()) + " rows over " +
             std::to_string(c.max_context),
         us, keys * (c.cache_type == DType::i8 ? 132 : 256), pairs * 32 * 128 * 2);
}
K31_CUDA_TEST("attn.index_select.time") {
  if (!timing())
    return;
  constexpr int K = 1024;
  for (int rows : {1, 16})
    measure<sized(128 * K, 64, false)>(std::vector<Batches::Run>((size_t)rows, {128 * K - 1, 1}));
  measure<sized(1024 * K, 64, false)>({{1024 * K - 1, 1}});
  measure<sized(1024 * K, 64, false, DType::i8)>({{1024 * K - 1, 1}});
  measure<sized(8 * K, 64, false)>(std::vector<Batches::Run>(64, {8 * K - 1, 1}));
  measure<sized(128 * K, 4096, true)>({{124 * K, 4096}});
  measure<sized(128 * K, 4096, true, DType::i8)>({{124 * K, 4096}});
  measure<sized(1024 * K, 512, true)>({{1024 * K - 512, 512}});
}
} // namespace
