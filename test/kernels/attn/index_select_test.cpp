// attn.index_select against a full sort. Exact cases use small integers, whose scores have no rounding error in any order of
// sums; random cases check that no position left out beats one taken by more than the rounding error.
#include "codegen/kernels/attn/index_select.h"
#include "test/kernels/common/batch.h"

using namespace k31::test;
using namespace k31::kernels::index_select;
extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Problem {
  int heads, dim, top_k;
  BatchData batch;
  Tensor q, w, pages, out, workspace, coded; // coded: integers, of which `pages` has the values
  float scale = 0.25f, head_scale = 0.5f;    // powers of two: no rounding
  DType type;
  bool coded_keys = false;

  Problem(int heads, int dim, int top_k, const std::vector<BatchData::Run> &runs, DType type = DType::bf16)
      : heads(heads), dim(dim), top_k(top_k), batch(runs), q(type, batch.rows(), heads * dim, heads * dim + 3),
        w(DType::f32, batch.rows(), heads, heads + 1), pages(filled_pool(batch, type, dim)), out(DType::i32, batch.rows(), top_k),
        type(type) {
    q.fill_normal(1, batch.live());
    w.fill_normal(1, batch.live());
  }
  // All values small integers.
  void make_exact() {
    q.fill([] { return (float)uniform_int(-2, 2); }, batch.live());
    w.fill([] { return (float)uniform_int(-2, 2); }, batch.live());
    for (int s = 0; s < batch.live_segments(); ++s)
      for (int p = 0; p < batch.segments[s].start + batch.segments[s].length; ++p)
        for (int d = 0; d < dim; ++d)
          pages.set(batch.cache_row(s, p), d, (float)uniform_int(-2, 2));
  }
  // Scales of keys of small integers become 1: the first value is 127, which no query looks at.
  void make_scales_one() {
    for (int r = 0; r < batch.live(); ++r)
      for (int h = 0; h < heads; ++h)
        q.set(r, h * dim, 0);
    for (int s = 0; s < batch.live_segments(); ++s)
      for (int p = 0; p < batch.segments[s].start + batch.segments[s].length; ++p)
        pages.set(batch.cache_row(s, p), 0, 127);
  }
  void make_codes() { // of fp32 keys
    coded = coded_key_pool(pages), coded_keys = true;
  }
  void run(uint32_t tasks) {
    const int context = batch.columns * 256;
    workspace = Tensor(DType::i32, tasks, 2 * context);
    k31_config = {batch.rows(),
                  heads,
                  dim,
                  top_k,
                  context,
                  (int)q.ld(),
                  (int)w.ld(),
                  batch.columns,
                  scale,
                  head_scale,
                  type,
                  w.type(),
                  coded_keys ? DType::i8 : type};
    launch(k31_entry,
           Args{q.data(), w.data(), coded_keys ? coded.data() : pages.data(), batch.view(), out.as<int32_t>(), workspace.data()},
           tasks);
    EXPECT_TRUE(workspace.untouched_outside(tasks));
    EXPECT_TRUE(out.untouched_outside(batch.live())) << "a dead row was written";
  }
  std::vector<int> selected(int row) {
    int32_t *o = out.as<int32_t>() + (int64_t)row * top_k;
    return {o, o + top_k};
  }
  // Scores of a row in fp64; `magnitude` gets the sum of absolute values, the measure of rounding.
  std::vector<double> scores(int row, double *magnitude = nullptr) {
    std::vector<double> all;
    for (int s = 0; s <= batch.position(row); ++s) {
      double total = 0, size = 0;
      for (int h = 0; h < heads; ++h) {
        double dot = 0, absolute = 0;
        for (int d = 0; d < dim; ++d) {
          double x = (double)q.at(row, h * dim + d) * pages.at(batch.cache_row(batch.row_segment[row], s), d);
          dot += x, absolute += std::abs(x);
        }
        total += w.at(row, h) * head_scale * (dot > 0 ? dot * scale : dot == dot ? 0 : NAN);
        size += std::abs(w.at(row, h) * head_scale) * absolute * scale;
      }
      if (magnitude)
        *magnitude = std::max(*magnitude, size);
      all.push_back(total == 0 ? 0 : total);
    }
    return all;
  }
  void expect_exact() {
    for (int r = 0; r < batch.live(); ++r)
      ASSERT_EQ(selected(r), best(scores(r), top_k)) << "row " << r << " at position " << batch.position(r);
  }
  // The definition: NaN last, higher score first, then lower position; ascending, padded.
  static std::vector<int> best(const std::vector<double> &scores, int top_k) {
    std::vector<int> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      bool nan_a = std::isnan(scores[a]), nan_b = std::isnan(scores[b]);
      if (nan_a != nan_b)
        return nan_b;
      return nan_a || scores[a] == scores[b] ? a < b : scores[a] > scores[b];
    });
    if ((int)order.size() > top_k)
      order.resize(top_k);
    std::sort(order.begin(), order.end());
    order.resize(top_k, -1);
    return order;
  }
};

TEST(IndexSelect, ExactScoresManyTies) {
  for (uint32_t tasks : {1u, 3u, 64u})
    for (int top_k : {1, 2, 31, 32, 33, 64}) {
      SCOPED_TRACE(testing::Message() << "top_k " << top_k << ", " << tasks << " tasks");
      Problem p(3, 16, top_k, {{0, 70}, {255, 1}, {256, 1}, {254, 5}, {600, 2}, {0, 1}});
      p.make_exact();
      p.run(tasks);
      p.expect_exact();
    }
}

TEST(IndexSelect, BlockBoundaries) {
  for (int positions : {255, 256, 257, 511, 512, 513})
    for (int top_k : {positions - 1, positions, positions + 1, 255, 256, 257, 8}) {
      SCOPED_TRACE(testing::Message() << positions << " positions, top_k " << top_k);
      Problem p(4, 24, top_k, {{positions - 1, 1}, {0, 3}}, DType::f32);
      p.make_exact();
      p.run(2);
      p.expect_exact();
    }
}

TEST(IndexSelect, CodesOfExactKeys) {
  for (uint32_t tasks : {1u, 3u})
    for (auto [heads, dim, top_k] : {std::tuple(3, 16, 31), {4, 24, 64}, {32, 128, 100}}) {
      Problem p(heads, dim, top_k, {{0, 70}, {255, 1}, {256, 1}, {254, 5}, {600, 2}, {0, 1}}, DType::f32);
      p.make_exact();
      p.make_scales_one();
      p.make_codes();
      p.run(tasks);
      p.expect_exact();
    }
}

// What was planted is found, and the rest is almost the same set as with plain keys.
TEST(IndexSelect, CodesKeepTheSet) {
  int common = 0, all = 0;
  for (int n = 0; n < 4; ++n) {
    Problem p(32, 128, 256, {{2000, 2}}, DType::f32);
    const int planted = 300 + 500 * n % 1900;
    int head = 0;
    for (int h = 1; h < 32; ++h)
      head = p.w.at(0, h) > p.w.at(0, head) ? h : head;
    for (int d = 0; d < 128; ++d)
      p.pages.set(p.batch.cache_row(0, planted), d, 2 * p.q.at(0, head * 128 + d));
    p.run(1);
    const std::vector<int> plain = p.selected(0);
    p.make_codes();
    p.run(1);
    for (int s : p.selected(0))
      common += std::binary_search(plain.begin(), plain.end(), s), ++all;
    const std::vector<int> found = p.selected(0);
    EXPECT_TRUE(std::binary_search(found.begin(), found.end(), planted));
  }
  EXPECT_GT(common, all * 0.99) << common << " of " << all; // of normal scores, which lie dense
}

TEST(IndexSelect, AllZeroScoresTakeTheLowestPositions) {
  Problem p(2, 16, 40, {{300, 3}});
  p.make_exact();
  p.w.fill([] { return uniform_int(0, 1) ? 0.0f : -0.0f; }, p.batch.live());
  p.run(1);
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 40; ++i)
      ASSERT_EQ(p.selected(r)[i], i);
}

// One head of one dimension, q = 1, both scales 1: with w = 1 the score of a key is relu(key), with w = -1 its negative, and
// with a tiny negative w mostly the -0.0 of an underflow.
TEST(IndexSelect, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  const float special[] = {0.0f,  -0.0f, tiny, 2 * tiny, -tiny, 1e-38f, 0.25f, 1.0f, std::nextafter(1.0f, 2.0f),
                           3e38f, inf,   -inf, NAN};
  for (float weight : {1.0f, -1.0f, tiny, -tiny, inf})
    for (int top_k : {1, 3, 20, 100, 256, 300, 511}) {
      SCOPED_TRACE(testing::Message() << "weight " << weight << ", top_k " << top_k);
      Problem p(1, 1, top_k, {{511, 1}}, DType::f32);
      p.scale = p.head_scale = 1;
      p.q.fill([] { return 1.0f; }, 1);
      p.w.fill([&] { return weight; }, 1);
      std::vector<double> scores;
      for (int s = 0; s < 512; ++s) {
        float key = special[uniform_int(0, 12)];
        p.pages.set(p.batch.cache_row(0, s), 0, key);
        float score = weight * (key < 0 ? 0.0f : key); // inf x 0 is NaN
        scores.push_back(score == 0 ? 0 : score);
      }
      p.run(1);
      ASSERT_EQ(p.selected(0), Problem::best(scores, top_k));
    }
}

TEST(IndexSelect, RandomScoresAreSeparated) {
  for (DType type : {DType::bf16, DType::f32})
    for (int top_k : {16, 200, 2048}) {
      SCOPED_TRACE(testing::Message() << "top_k " << top_k);
      Problem p(6, 128, top_k, {{700, 2}, {0, 20}, {2050, 3}}, type);
      p.scale = 1 / std::sqrt(128.0f), p.head_scale = 1 / std::sqrt(6.0f);
      p.run(5);
      for (int r = 0; r < p.batch.live(); ++r) {
        double magnitude = 0;
        std::vector<double> scores = p.scores(r, &magnitude);
        std::vector<int> got = p.selected(r);
        std::vector<bool> taken(scores.size());
        double lowest = 1e30, highest = -1e30;
        int last = -1, count = 0;
        for (int s : got) {
          if (s < 0)
            continue;
          ASSERT_EQ(got[count], s) << "-1 before a position";
          ASSERT_GT(s, last);
          ASSERT_LT(s, (int)scores.size());
          taken[s] = true, last = s, ++count;
          lowest = std::min(lowest, scores[s]);
        }
        ASSERT_EQ(count, std::min(top_k, (int)scores.size()));
        for (size_t s = 0; s < scores.size(); ++s)
          if (!taken[s])
            highest = std::max(highest, scores[s]);
        ASSERT_LE(highest, lowest + 1e-6 * magnitude) << "row " << r;
      }
    }
}

// More heads and dimensions than one register tile, none of them a multiple of it.
TEST(IndexSelect, OddShapes) {
  for (auto [heads, dim] : {std::pair{1, 1}, {5, 20}, {64, 128}, {32, 256}}) {
    SCOPED_TRACE(testing::Message() << heads << " heads of " << dim);
    Problem p(heads, dim, 10, {{40, 2}, {290, 1}});
    p.make_exact();
    p.run(2);
    p.expect_exact();
  }
}

TEST(IndexSelect, TaskCountChangesNothing) {
  std::vector<std::vector<int>> first;
  for (uint32_t tasks : {1u, 2u, 7u, 50u}) {
    random_engine().seed(11);
    Problem p(4, 64, 50, {{400, 30}, {90, 1}});
    p.run(tasks);
    std::vector<std::vector<int>> all;
    for (int r = 0; r < p.batch.live(); ++r)
      all.push_back(p.selected(r));
    if (first.empty())
      first = all;
    EXPECT_EQ(all, first) << tasks << " tasks";
  }
}

constexpr int kLong = 131072; // positions

// Keys that point where the queries look, at several depths, among many that do not: all are selected, and the whole set is that
// of a full sort (whole numbers have no rounding error).
TEST(IndexSelect, PlantedKeysAtLength) {
  for (int top_k : {64, 2048}) {
    SCOPED_TRACE(testing::Message() << "top_k " << top_k);
    Problem p(2, 16, top_k, {{kLong - 2, 2}, {70000, 1}, {40000, 1}});
    p.make_exact();
    for (int r = 0; r < p.batch.live(); ++r) {
      for (int c = 0; c < 32; ++c)
        p.q.set(r, c, c % 3 ? 1.0f : 2.0f);
      p.w.set(r, 0, 2), p.w.set(r, 1, 1);
    }
    const int depths[] = {0, 1, 10, 25, 50, 75, 90, 99};
    const auto planted = [&](int row, int depth) { return p.batch.position(row) / 100 * depth + depth % 7; };
    for (int r = 0; r < p.batch.live(); ++r)
      for (int depth : depths)
        for (int d = 0; d < 16; ++d)
          p.pages.set(p.batch.cache_row(p.batch.row_segment[r], planted(r, depth)), d, 7);
    p.run(3);
    p.expect_exact();
    for (int r = 0; r < p.batch.live(); ++r) {
      const std::vector<int> selected = p.selected(r);
      for (int depth : depths)
        ASSERT_TRUE(std::binary_search(selected.begin(), std::find(selected.begin(), selected.end(), -1), planted(r, depth)))
            << "row " << r << ", depth " << depth << " %";
    }
  }
}

// One head of one dimension, q = 1: rows of equal scores, of denormals, of both zeros, of infinities, and all of them mixed.
// Equal scores take the lowest positions.
TEST(IndexSelect, SpecialRowsAtLength) {
  const float inf = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<std::vector<float>> rows = {{3.0f},
                                                {0.0f, -0.0f},
                                                {tiny, 2 * tiny, 3 * tiny, 0.0f},
                                                {inf},
                                                {inf, -inf, 1.0f},
                                                {-1.0f, -inf, -tiny, -0.0f},
                                                {0.0f, tiny, 1.0f, inf, -inf}};
  for (float weight : {1.0f, -1.0f})
    for (size_t kind = 0; kind < rows.size(); ++kind) {
      SCOPED_TRACE(testing::Message() << "weight " << weight << ", row " << kind);
      Problem p(1, 1, 2048, {{kLong - 1, 1}}, DType::f32);
      p.scale = p.head_scale = 1;
      p.q.fill([] { return 1.0f; }, 1);
      p.w.fill([&] { return weight; }, 1);
      std::vector<double> scores;
      for (int s = 0; s < kLong; ++s) {
        const float key = rows[kind][uniform_int(0, (int)rows[kind].size() - 1)];
        p.pages.set(p.batch.cache_row(0, s), 0, key);
        const float score = weight * (key < 0 ? 0.0f : key);
        scores.push_back(score == 0 ? 0 : score);
      }
      p.run(1);
      ASSERT_EQ(p.selected(0), Problem::best(scores, 2048));
    }
}

} // namespace
