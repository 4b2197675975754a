// attn.attend against a two-pass softmax in fp64: dense and over indices, with its log-sum-exp.
#include "codegen/kernels/attn/attend.h"
#include "test/kernels/common/batch.h"
#include "test/kernels/common/dense.h"
#include "test/kernels/common/fixture.h"

using namespace k31::test;
using namespace k31::kernels::attend;
extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Case {
  int heads, latent, shared;
  int top_k = 0;
  bool lse = false;
  DType q_type = DType::f32, cache_type = DType::f32, out_type = DType::f32;
  float q_scale = 1;
};

const std::vector<BatchData::Run> kRuns = {{0, 19}, {255, 1}, {0, 1}, {254, 4}, {600, 1}, {14, 3}};

struct Problem {
  static constexpr int kHeadGap = 7; // a head's query has other values before its shared part
  Case t;
  BatchData batch;
  Tensor q, q_shared, pages, indices, out, lse, coded; // coded: fp8, of which `pages` has the values
  float scale = 1 / std::sqrt((float)(t.latent + t.shared));

  Problem(const Case &t, const std::vector<BatchData::Run> &runs)
      : t(t), batch(runs), q(t.q_type, batch.rows(), t.heads * t.latent, t.heads * t.latent + 5),
        q_shared(t.q_type, batch.rows(), t.heads * (kHeadGap + t.shared)),
        pages(filled_pool(batch, t.cache_type == DType::f8 ? DType::f32 : t.cache_type, t.latent + t.shared)),
        indices(DType::i32, batch.rows(), std::max(t.top_k, 1)),
        out(t.out_type, batch.rows(), t.heads * t.latent, t.heads * t.latent + 3), lse(DType::f32, batch.rows(), t.heads) {
    q.fill_normal(t.q_scale, batch.live());
    if (t.cache_type == DType::f8)
      coded = coded_latent_pool(pages, t.latent);
    for (int r = 0; r < batch.live(); ++r)
      for (int h = 0; h < t.heads; ++h)
        for (int d = 0; d < t.shared; ++d) // the gap stays poison
          q_shared.set(r, h * (kHeadGap + t.shared) + kHeadGap + d, normal(t.q_scale));
  }
  // Draws up to top_k positions of each row, ascending, then -1.
  void draw_indices() {
    for (int r = 0; r < batch.live(); ++r) {
      std::vector<int> all(batch.position(r) + 1);
      std::iota(all.begin(), all.end(), 0);
      std::shuffle(all.begin(), all.end(), random_engine());
      all.resize(std::min((int)all.size(), t.top_k));
      std::sort(all.begin(), all.end());
      for (int i = 0; i < t.top_k; ++i)
        indices.set(r, i, i < (int)all.size() ? (float)all[i] : -1);
    }
  }
  void run(uint32_t tasks) {
    k31_config = {batch.rows(), t.heads,       t.latent,      t.shared, (int)q.ld(), (int)q_shared.ld(), kHeadGap + t.shared,
                  t.top_k,      (int)out.ld(), batch.columns, t.lse,    scale,       t.q_type,           t.q_type,
                  t.cache_type, t.out_type,    kHeadGap};
    Args args{q.data(), q_shared.data(), t.cache_type == DType::f8 ? coded.data() : pages.data(), batch.view(), {}};
    int i = 0;
    if (t.top_k)
      args.tail[i++] = indices.data();
    args.tail[i++] = out.data();
    if (t.lse)
      args.tail[i++] = lse.data();
    launch(k31_entry, args, tasks);
  }
  std::vector<int> visible(int row) const {
    std::vector<int> all;
    for (int s = 0; s < (t.top_k ? t.top_k : batch.position(row) + 1); ++s)
      if (!t.top_k || indices.at(row, s) >= 0)
        all.push_back(t.top_k ? (int)indices.at(row, s) : s);
    return all;
  }
  void expect(double tolerance) {
    std::vector<std::vector<double>> want(batch.live(), std::vector<double>(t.heads * t.latent));
    std::vector<std::vector<double>> want_lse(batch.live(), std::vector<double>(t.heads, -INFINITY));
    for (int r = 0; r < batch.live(); ++r)
      for (int h = 0; h < t.heads; ++h) {
        std::vector<int> keys = visible(r);
        std::vector<double> p;
        double top = -INFINITY, total = 0;
        for (int s : keys) {
          int64_t row = batch.cache_row(batch.row_segment[r], s);
          double score = 0;
          for (int d = 0; d < t.latent; ++d)
            score += (double)q.at(r, h * t.latent + d) * pages.at(row, d);
          for (int d = 0; d < t.shared; ++d)
            score += (double)q_shared.at(r, h * (kHeadGap + t.shared) + kHeadGap + d) * pages.at(row, t.latent + d);
          p.push_back(score * scale);
          top = std::max(top, p.back());
        }
        for (double &x : p)
          total += x = std::exp(x - top);
        for (size_t i = 0; i < keys.size(); ++i)
          for (int d = 0; d < t.latent; ++d)
            want[r][h * t.latent + d] += p[i] / total * pages.at(batch.cache_row(batch.row_segment[r], keys[i]), d);
        if (!keys.empty())
          want_lse[r][h] = top + std::log(total);
      }
    expect_close(out, batch.live(), [&](int64_t r, int64_t c) { return want[r][c]; }, tolerance);
    if (!t.lse) {
      EXPECT_TRUE(lse.untouched_outside(0));
      return;
    }
    for (int r = 0; r < batch.live(); ++r)
      for (int h = 0; h < t.heads; ++h)
        if (std::isinf(want_lse[r][h]))
          EXPECT_EQ(lse.at(r, h), -std::numeric_limits<float>::infinity());
        else
          EXPECT_NEAR(lse.at(r, h), want_lse[r][h], tolerance * (1 + std::abs(want_lse[r][h])));
    EXPECT_TRUE(lse.untouched_outside(batch.live()));
  }
};

void check(const Case &t, uint32_t tasks, double tolerance = 1e-5) {
  SCOPED_TRACE(testing::Message() << t.heads << " heads, " << t.latent << " + " << t.shared << ", top_k " << t.top_k << ", "
                                  << tasks << " tasks");
  Problem p(t, kRuns);
  if (t.top_k)
    p.draw_indices();
  p.run(tasks);
  p.expect(tolerance);
}

TEST(Attend, Dense) {
  for (uint32_t tasks : {1u, 3u, 100u})
    for (Case t : {Case{4, 32, 8}, Case{1, 16, 16, 0, true}, Case{3, 20, 5, 0, true}, Case{20, 64, 64}, Case{33, 48, 1}})
      check(t, tasks);
  check({12, 512, 64, 0, true}, 2);
}

TEST(Attend, OverIndices) {
  for (uint32_t tasks : {1u, 3u, 100u})
    for (int top_k : {1, 15, 16, 17, 64})
      check({5, 32, 8, top_k, top_k % 2 == 1}, tasks);
  check({12, 512, 64, 40, true}, 2);
}

TEST(Attend, Types) {
  for (DType q : {DType::f32, DType::bf16})
    for (DType cache : {DType::f32, DType::bf16})
      for (DType out : {DType::f32, DType::bf16})
        check({6, 64, 16, 0, true, q, cache, out}, 3);
}

TEST(Attend, Codes) {
  for (int top_k : {0, 17})
    for (DType q : {DType::f32, DType::bf16}) {
      check({6, 64, 16, top_k, true, q, DType::f8, DType::f32}, 3);
      check({3, 132, 6, top_k, false, q, DType::f8, q}, 2);
      check({5, 512, 64, top_k, true, q, DType::f8, q}, 3);
    }
}

// Scores of some hundreds: the maximum must move before anything is exponentiated.
TEST(Attend, LargeScores) { check({4, 64, 16, 0, true, DType::f32, DType::f32, DType::f32, 300}, 2, 2e-4); }

TEST(Attend, AllIndicesInOrderEqualDense) {
  Case t{5, 32, 8};
  Problem dense(t, {{0, 40}});
  t.top_k = 40;
  Problem sparse(t, {{0, 40}});
  sparse.batch = dense.batch, sparse.q = dense.q, sparse.q_shared = dense.q_shared, sparse.pages = dense.pages;
  sparse.draw_indices(); // top_k covers all positions
  dense.run(2), sparse.run(3);
  for (int r = 0; r < 40; ++r)
    for (int c = 0; c < 5 * 32; ++c)
      ASSERT_EQ(dense.out.at(r, c), sparse.out.at(r, c));
}

// Skipped entries may stand anywhere; a row without keys is zero with log-sum-exp -inf, so that it merges as nothing.
TEST(Attend, SkippedAndEmptyRows) {
  Problem p({4, 32, 8, 20, true}, kRuns);
  p.draw_indices();
  for (int r = 0; r < p.batch.live(); ++r)
    for (int i = 0; i < 20; ++i)
      if (r % 3 == 0 || uniform_int(0, 1))
        p.indices.set(r, i, -1);
  p.run(2);
  p.expect(1e-5);
}

// Two halves of the keys, merged by their log-sum-exps, give the whole.
TEST(Attend, PartsMerge) {
  Case t{4, 32, 8, 301, true};
  Problem whole(t, {{300, 1}});
  whole.draw_indices();
  whole.run(1);
  Problem low = whole, high = whole;
  for (int i = 0; i < t.top_k; ++i)
    (i < 100 ? high : low).indices.set(0, i, -1);
  low.run(1), high.run(1);
  for (int c = 0; c < t.heads * t.latent; ++c) {
    double total = whole.lse.at(0, c / t.latent), a = std::exp(low.lse.at(0, c / t.latent) - total),
           b = std::exp(high.lse.at(0, c / t.latent) - total);
    ASSERT_NEAR(a * low.out.at(0, c) + b * high.out.at(0, c), whole.out.at(0, c), 2e-6);
  }
}

TEST(Attend, TaskCountChangesNoBit) {
  std::vector<char> first;
  for (uint32_t tasks : {1u, 2u, 7u, 40u, 300u}) {
    random_engine().seed(5);
    Problem p({37, 64, 16, 0, true}, kRuns);
    p.run(tasks);
    std::vector<char> bits(p.out.as<char>(), p.out.as<char>() + p.batch.live() * p.out.ld() * 4);
    bits.insert(bits.end(), p.lse.as<char>(), p.lse.as<char>() + p.batch.live() * 37 * 4);
    if (first.empty())
      first = bits;
    EXPECT_EQ(bits, first) << tasks << " tasks";
  }
}

// An independent implementation's MLA layer. The projections around the op are plain loops; W_kvb is absorbed into q and out.
TEST(Attend, ThirdPartyLayer) {
  Fixture f("third-party/ops/mla.json");
  const int heads = f.value<int>("n_heads"), nope = f.value<int>("qk_nope"), rope = f.value<int>("qk_rope");
  const int latent = f.value<int>("kv_lora"), value = f.value<int>("v_head"), tokens = (int)f.shape("in")[1];
  const Matrix x = matrix(f, "in", tokens);
  Matrix qa = matmul(x, matrix(f, "q_a_proj_weight", f.value<int>("q_lora")));
  rms_norm(qa, f.data("q_a_layernorm_weight"), f.value<double>("rms_eps"));
  const Matrix q = matmul(qa, matrix(f, "q_b_proj_weight", heads * (nope + rope)));
  const Matrix kv_b = matrix(f, "kv_b_proj_weight", heads * (nope + value));
  const Matrix c = matrix(f, "kv_latent", tokens), r = matrix(f, "k_rope", tokens);

  Problem p({heads, latent, rope}, {{0, tokens}});
  for (int t = 0; t < tokens; ++t) {
    for (int i = 0; i < latent + rope; ++i)
      p.pages.set(p.batch.cache_row(0, t), i, (float)(i < latent ? c[t][i] : r[t][i - latent]));
    for (int h = 0; h < heads; ++h) {
      for (int i = 0; i < latent; ++i) {
        double sum = 0;
        for (int d = 0; d < nope; ++d)
          sum += q[t][h * (nope + rope) + d] * kv_b[h * (nope + value) + d][i];
        p.q.set(t, h * latent + i, (float)sum);
      }
      for (int d = 0; d < rope; ++d)
        p.q_shared.set(t, h * (Problem::kHeadGap + rope) + Problem::kHeadGap + d, (float)q[t][h * (nope + rope) + nope + d]);
    }
  }
  p.scale = f.value<float>("scale"); // 1 / sqrt(nope + rope)
  p.run(2);

  Matrix o(tokens, std::vector<double>(heads * value));
  const Matrix gate = matmul(x, matrix(f, "g_proj_weight", heads * value));
  for (int t = 0; t < tokens; ++t)
    for (int i = 0; i < heads * value; ++i) {
      for (int d = 0; d < latent; ++d)
        o[t][i] += kv_b[i / value * (nope + value) + nope + i % value][d] * p.out.at(t, i / value * latent + d);
      o[t][i] /= 1 + std::exp(-gate[t][i]);
    }
  const Matrix y = matmul(o, matrix(f, "o_proj_weight", (int)x[0].size())), want = matrix(f, "out", tokens);
  for (int t = 0; t < tokens; ++t)
    for (size_t i = 0; i < want[t].size(); ++i)
      ASSERT_NEAR(y[t][i], want[t][i], 1e-5 + 1e-4 * std::abs(want[t][i])) << "token " << t << ", column " << i;
}

} // namespace
