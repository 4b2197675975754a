// attn.kda against the recurrence of its header, token by token in fp64, for the token form and the chunk form.
#include "codegen/kernels/attn/kda.h"
#include "test/kernels/common/batch.h"
#include "test/kernels/common/decay.h"
#include "test/kernels/common/dense.h"
#include "test/kernels/common/fixture.h"

using namespace k31::test;
using namespace k31::kernels::kda;
extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Case {
  int heads, dim, chunk;
  Decay decay = Decay::bounded;
  DType qkv_type = DType::f32, out_type = DType::f32;
};

struct Problem {
  Tensor q, k, v, g, beta, state, out;
  Problem(const Case &t, int capacity, int live, int slots)
      : q(t.qkv_type, capacity, t.heads * t.dim, 2 * t.heads * t.dim), k(q), v(q), g(DType::f32, capacity, t.heads * t.dim),
        beta(DType::f32, capacity, t.heads), state(DType::f32, (int64_t)slots * t.heads * t.dim, t.dim),
        out(t.out_type, capacity, t.heads * t.dim, t.heads * t.dim + 9) {
    q.fill_normal(1, live), k.fill_normal(1, live), v.fill_normal(1, live);
    g.fill([&] { return draw_decay(t.decay); }, live);
    beta.fill([] { return uniform(0, 1); }, live);
  }
  void configure(const Case &t) {
    k31_config = {(int)q.rows(),  t.heads,       t.dim,   (int)q.ld(), (int)g.ld(),
                  (int)beta.ld(), (int)out.ld(), t.chunk, t.qkv_type,  t.out_type};
  }
  Args args(const BatchData &batch, int64_t row = 0) {
    auto at = [&](Tensor &x) { return x.as<char>() + row * x.ld() * element_bytes(x.type()); };
    return {at(q), at(k), at(v), (float *)at(g), (float *)at(beta), state.as<float>(), batch.view(), at(out)};
  }
};

// S [key, value] of a head and its outputs for `rows` tokens from `row` on, in fp64.
void recur(const Problem &p, int dim, int head, int row, int rows, std::vector<double> &s, std::vector<double> &o) {
  for (int r = row; r < row + rows; ++r) {
    std::vector<double> q(dim), k(dim);
    double qq = 1e-6, kk = 1e-6;
    for (int d = 0; d < dim; ++d) {
      q[d] = p.q.at(r, head * dim + d), k[d] = p.k.at(r, head * dim + d);
      qq += q[d] * q[d], kk += k[d] * k[d];
    }
    for (int d = 0; d < dim; ++d) {
      q[d] /= std::sqrt(qq) * std::sqrt((double)dim), k[d] /= std::sqrt(kk);
      for (int v = 0; v < dim; ++v)
        s[d * dim + v] *= std::exp((double)p.g.at(r, head * dim + d));
    }
    for (int v = 0; v < dim; ++v) {
      double seen = 0, y = 0;
      for (int d = 0; d < dim; ++d)
        seen += k[d] * s[d * dim + v];
      double delta = p.beta.at(r, head) * (p.v.at(r, head * dim + v) - seen);
      for (int d = 0; d < dim; ++d) {
        s[d * dim + v] += k[d] * delta;
        y += q[d] * s[d * dim + v];
      }
      o.push_back(y);
    }
  }
}

// Prefill, decode, one token from nothing, a fork (slot_in stays) and a long continuation.
const std::vector<BatchData::Run> kRuns = {{0, 37, -1, 4}, {7, 1, 1, 1},    {0, 1, -1, 7},
                                           {12, 3, 3, 6},  {100, 16, 5, 5}, {30, 50, 8, 2}};
constexpr int kSlots = 10;

void check(const Case &t, uint32_t tasks) {
  SCOPED_TRACE(testing::Message() << t.heads << " heads of " << t.dim << ", chunk " << t.chunk << ", decay " << (int)t.decay
                                  << ", " << tasks << " tasks");
  BatchData batch(kRuns);
  Problem p(t, batch.rows(), batch.live(), kSlots);
  const int per_slot = t.heads * t.dim;
  for (int slot : {1, 3, 5, 8})
    for (int i = 0; i < per_slot; ++i)
      for (int v = 0; v < t.dim; ++v)
        p.state.set(slot * per_slot + i, v, normal());
  Tensor before = p.state;
  p.configure(t);
  launch(k31_entry, p.args(batch), tasks);

  std::vector<std::vector<double>> want(batch.live(), std::vector<double>(per_slot));
  std::vector<double> states((size_t)kSlots * per_slot * t.dim, NAN);
  for (int s = 0; s < batch.live_segments(); ++s)
    for (int h = 0; h < t.heads; ++h) {
      const auto &segment = batch.segments[s];
      std::vector<double> state(t.dim * t.dim, 0), o;
      if (segment.slot_in >= 0)
        for (int i = 0; i < t.dim * t.dim; ++i)
          state[i] = before.at((int64_t)(segment.slot_in * t.heads + h) * t.dim + i / t.dim, i % t.dim);
      recur(p, t.dim, h, segment.row_begin, segment.length, state, o);
      for (int i = 0; i < segment.length * t.dim; ++i)
        want[segment.row_begin + i / t.dim][h * t.dim + i % t.dim] = o[i];
      std::copy(state.begin(), state.end(), states.begin() + (int64_t)(segment.slot_out * t.heads + h) * t.dim * t.dim);
    }
  expect_close(p.out, batch.live(), [&](int64_t r, int64_t c) { return want[r][c]; }, 2e-5);
  for (int64_t i = 0; i < p.state.rows(); ++i)
    for (int v = 0; v < t.dim; ++v) {
      double expected = states[i * t.dim + v];
      float got = p.state.at(i, v), old = before.at(i, v);
      if (std::isnan(expected))
        ASSERT_TRUE(got == old || (std::isnan(got) && std::isnan(old))) << "slot " << i / per_slot << " was written";
      else
        ASSERT_NEAR(got, expected, 2e-5) << "slot " << i / per_slot << ", key " << i % t.dim << ", value " << v;
    }
  EXPECT_TRUE(p.state.untouched_outside(p.state.rows()));
}

TEST(Kda, TokenForm) {
  for (Case t : {Case{3, 16, 1}, Case{2, 128, 1}, Case{3, 48, 0}, Case{1, 256, 1}, Case{2, 16, 1, Decay::strong},
                 Case{2, 16, 1, Decay::cut}})
    check(t, 2);
}

TEST(Kda, ChunkForm) {
  for (Decay d : {Decay::bounded, Decay::weak, Decay::strong, Decay::mixed, Decay::cut})
    for (Case t :
         {Case{3, 16, 16, d}, Case{2, 128, 16, d}, Case{2, 48, 8, d}, Case{1, 256, 16, d}, Case{2, 32, 5, d}, Case{2, 32, 64, d}})
      check(t, 3);
}

TEST(Kda, Types) {
  for (DType in : {DType::f32, DType::bf16})
    for (DType out : {DType::f32, DType::bf16})
      check({2, 64, 16, Decay::bounded, in, out}, 4);
}

TEST(Kda, TaskCountChangesNoBit) {
  Case t{5, 32, 16};
  std::vector<std::vector<char>> results;
  for (uint32_t tasks : {1u, 2u, 7u, 31u, 100u}) {
    random_engine().seed(7);
    BatchData batch(kRuns);
    Problem p(t, batch.rows(), batch.live(), kSlots);
    p.state.fill_normal();
    p.configure(t);
    launch(k31_entry, p.args(batch), tasks);
    char *o = p.out.as<char>(), *s = p.state.as<char>();
    results.emplace_back(o, o + p.out.ld() * 4 * batch.live());
    results.back().insert(results.back().end(), s, s + p.state.rows() * t.dim * 4);
    EXPECT_EQ(results.back(), results.front()) << tasks << " tasks";
  }
}

TEST(Kda, ChunksEqualOnePass) {
  const int tokens = 75;
  for (Decay decay : {Decay::bounded, Decay::strong}) {
    Case t{2, 64, 16, decay};
    Problem p(t, tokens, tokens, 2);
    p.configure(t);
    std::vector<Tensor> outs, states;
    for (const std::vector<int> &cuts : {std::vector<int>{75}, {40, 35}, {1, 17, 2, 16, 5, 33, 1}}) {
      int done = 0;
      for (int length : cuts) {
        BatchData batch({{done, length, done ? 1 : -1, 1}}, 0);
        launch(k31_entry, p.args(batch, done), 2);
        done += length;
      }
      outs.push_back(p.out), states.push_back(p.state);
    }
    for (size_t i = 1; i < outs.size(); ++i) {
      expect_close(outs[i], tokens, [&](int64_t r, int64_t c) { return outs[0].at(r, c); }, 1e-5);
      for (int64_t r = 0; r < 2 * 2 * 64; ++r) // slot 0 stays poison
        for (int v = 0; v < 64; ++v)
          if (r < 2 * 64)
            ASSERT_TRUE(std::isnan(states[i].at(r, v)));
          else
            ASSERT_NEAR(states[i].at(r, v), states[0].at(r, v), 1e-5);
    }
  }
}

// Zero keys and queries have no direction: the epsilon keeps them zero.
TEST(Kda, ZeroVectors) {
  for (int chunk : {1, 16}) {
    Case t{1, 32, chunk};
    Problem p(t, 20, 20, 1);
    p.q.fill([] { return 0.f; });
    p.k.fill([] { return 0.f; });
    p.configure(t);
    BatchData batch({{0, 20, -1, 0}}, 0);
    launch(k31_entry, p.args(batch), 1);
    expect_close(p.out, 20, [](int64_t, int64_t) { return 0.0; }, 0);
    expect_close(p.state, 32, [](int64_t, int64_t) { return 0.0; }, 0, "state");
  }
}

// An independent implementation's recurrence, with q and k as they are. Our k is k / n, n its norm; the same S comes from
// beta n^2 and v / n, and the output is divided by the norm of q.
TEST(Kda, ThirdPartyRecurrence) {
  for (int chunk : {1, 4, 8})
    for (const char *name : {"third-party/ops/kda_recur1.json", "third-party/ops/kda_recur8.json"}) {
      SCOPED_TRACE(testing::Message() << name << ", chunk " << chunk);
      Fixture fixture(name);
      const int tokens = fixture.value<int>("T");
      Case t{fixture.value<int>("H"), fixture.value<int>("d_k"), chunk};
      Problem p(t, tokens, tokens, 1);
      p.q.fill_from(fixture.data("q")), p.k.fill_from(fixture.data("k")), p.v.fill_from(fixture.data("v"));
      std::vector<float> alpha = fixture.data("alpha");
      for (float &a : alpha)
        a = std::log(a);
      p.g.fill_from(alpha), p.beta.fill_from(fixture.data("beta"));
      auto norm = [&](const Tensor &x, int64_t r, int64_t head) {
        double squares = 1e-6;
        for (int d = 0; d < t.dim; ++d)
          squares += std::pow((double)x.at(r, head * t.dim + d), 2);
        return std::sqrt(squares);
      };
      for (int r = 0; r < tokens; ++r)
        for (int h = 0; h < t.heads; ++h) {
          double n = norm(p.k, r, h);
          p.beta.set(r, h, (float)(p.beta.at(r, h) * n * n));
          for (int d = 0; d < t.dim; ++d)
            p.v.set(r, h * t.dim + d, (float)(p.v.at(r, h * t.dim + d) / n));
        }
      p.configure(t);
      BatchData batch({{0, tokens, -1, 0}}, 0);
      launch(k31_entry, p.args(batch), 2);
      std::vector<float> o = fixture.data("out"), s = fixture.data("state_out");
      expect_close(
          p.out, tokens, [&](int64_t r, int64_t c) { return o[r * t.heads * t.dim + c] / norm(p.q, r, c / t.dim); }, 1e-5);
      expect_close(p.state, t.heads * t.dim, [&](int64_t r, int64_t c) { return s[r * t.dim + c]; }, 1e-5, "state");
    }
}

// Its whole layer of eight tokens; what stands around the op is plain loops. The op normalises q and k here.
TEST(Kda, ThirdPartyLayer) {
  Fixture f("third-party/ops/kda_layer8.json");
  const int tokens = f.value<int>("T"), taps = f.value<int>("conv_k");
  const Matrix x = matrix(f, "in", tokens);
  for (int chunk : {1, 4, 8}) {
    Case t{f.value<int>("H"), f.value<int>("d_k"), chunk};
    const int width = t.heads * t.dim;
    Problem p(t, tokens, tokens, 1);
    for (auto [name, to] : {std::pair<std::string, Tensor *>{"q", &p.q}, {"k", &p.k}, {"v", &p.v}}) {
      const Matrix in = matmul(x, matrix(f, name + "_proj", width)), w = matrix(f, name + "_conv", width);
      for (int r = 0; r < tokens; ++r)
        for (int c = 0; c < width; ++c) {
          double y = 0;
          for (int j = std::max(0, taps - 1 - r); j < taps; ++j)
            y += w[c][j] * in[r - taps + 1 + j][c];
          to->set(r, c, (float)(y / (1 + std::exp(-y)))); // SiLU
        }
    }
    const Matrix z = matmul(matmul(x, matrix(f, "f_a", t.dim)), matrix(f, "f_b", width)),
                 b = matmul(x, matrix(f, "b_proj", t.heads));
    const std::vector<float> rate = f.data("A_log"), bias = f.data("dt_bias");
    for (int r = 0; r < tokens; ++r) {
      for (int c = 0; c < width; ++c)
        p.g.set(r, c, (float)(f.value<double>("lower_bound") / (1 + std::exp(-std::exp(rate[c / t.dim]) * (z[r][c] + bias[c])))));
      for (int h = 0; h < t.heads; ++h)
        p.beta.set(r, h, (float)(1 / (1 + std::exp(-b[r][h]))));
    }
    p.configure(t);
    BatchData batch({{0, tokens, -1, 0}}, 0);
    launch(k31_entry, p.args(batch), 2);

    Matrix o(tokens, std::vector<double>(width));
    const std::vector<float> gain = f.data("o_norm"), state = f.data("state_out");
    const Matrix gate = matmul(x, matrix(f, "g_proj", width));
    for (int r = 0; r < tokens; ++r)
      for (int c = 0; c < width; ++c) {
        double squares = 0;
        for (int d = 0; d < t.dim; ++d)
          squares += std::pow((double)p.out.at(r, c / t.dim * t.dim + d), 2);
        o[r][c] = p.out.at(r, c) / std::sqrt(squares / t.dim + f.value<double>("rms_eps")) * gain[c % t.dim] /
                  (1 + std::exp(-gate[r][c]));
      }
    const Matrix y = matmul(o, matrix(f, "o_proj", (int)x[0].size())), want = matrix(f, "out", tokens);
    for (int r = 0; r < tokens; ++r)
      for (size_t c = 0; c < want[r].size(); ++c)
        ASSERT_NEAR(y[r][c], want[r][c], 1e-5 + 1e-4 * std::abs(want[r][c])) << "token " << r << ", column " << c;
    expect_close(p.state, width, [&](int64_t r, int64_t c) { return state[r * t.dim + c]; }, 1e-5, "state");
  }
}

// Its decay factors: with beta 0 a state of ones becomes exp(g) on every key row.
TEST(Kda, ThirdPartyDecay) {
  Fixture fixture("third-party/ops/kda_decay.json");
  std::vector<int64_t> shape = fixture.shape("g"); // [1, tokens, heads, dim]
  const int tokens = (int)shape[1];
  Case t{(int)shape[2], (int)shape[3], 16};
  Problem p(t, tokens, tokens, tokens);
  p.g.fill_from(fixture.data("g"));
  p.beta.fill([] { return 0.f; });
  p.state.fill([] { return 1.f; });
  p.configure(t);
  std::vector<BatchData::Run> runs;
  for (int i = 0; i < tokens; ++i)
    runs.push_back({1, 1, i, i});
  BatchData batch(runs, 0);
  launch(k31_entry, p.args(batch), 3);
  std::vector<float> alpha = fixture.data("alpha");
  expect_close(p.state, p.state.rows(), [&](int64_t r, int64_t) { return alpha[r]; }, 1e-6, "state");
}

} // namespace
