// attn.kda_decode against the three kernels that it is made of, one behind the other: the same bits of results, states and
// windows. Each of them is tested against its definition by itself.
#include "codegen/kernels/attn/kda_decode.h"
#include "test/kernels/common/batch.h"
#include "test/kernels/common/decay.h"
#include "test/kernels/common/regions.h"

using namespace k31::test;
using namespace k31::kernels;
using kda_decode::Config;

extern "C" {
Config k31_config;
void k31_entry(const kda_decode::Args *args, uint32_t task, uint32_t tasks);
// The parts, compiled with names of their own.
short_conv::Config k31_short_conv_config;
kda::Config k31_kda_config;
row::Config k31_row_config;
void k31_short_conv_entry(const short_conv::Args *args, uint32_t task, uint32_t tasks);
void k31_kda_entry(const kda::Args *args, uint32_t task, uint32_t tasks);
void k31_row_entry(const row::Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Case {
  int heads, dim, taps = 4, at = 0;
  DType type = DType::bf16; // of activations
  Decay decay = Decay::bounded;
  bool activation = true;
};

const Region kSilu = lanewise(1, 1, [](const float *in, float *out) { out[0] = in[0] / (1 + std::exp(-in[0])); });

// Inputs: the recurrence's result (number `at`), gain, gate. Results: o normed times gain times sigmoid(gate), and o itself.
void set_norm(int at, int dim) {
  const int gain = at == 0 ? 1 : 0, gate = at == 2 ? 1 : 2;
  regions()[0] = lanewise(3, 1, [=](const float *in, float *out) { out[0] = in[at] * in[at]; });
  regions()[1] = lanewise(4, 2, [=](const float *in, float *out) {
    out[0] = in[at] / std::sqrt(in[3] / (float)dim + 1e-5f) * in[gain] / (1 + std::exp(-in[gate]));
    out[1] = in[at];
  });
}

row::Config row_config(const Case &t, int64_t ld_o, int64_t ld_gate, int64_t ld_y, int64_t ld_copy) {
  row::Config c;
  c.cols = t.heads * t.dim, c.groups = t.heads, c.inputs = 3, c.outputs = 2, c.phases = 1, c.sums[0] = 1;
  const int gain = t.at == 0 ? 1 : 0, gate = t.at == 2 ? 1 : 2;
  for (int i : {t.at, gate})
    c.kind[i] = (int)OperandKind::element, c.type[i] = (int)t.type;
  c.ld[t.at] = (int)ld_o, c.ld[gate] = (int)ld_gate;
  c.kind[gain] = (int)OperandKind::column, c.type[gain] = (int)DType::f32, c.length[gain] = t.dim;
  c.out_type[0] = c.out_type[1] = (int)t.type, c.out_ld[0] = (int)ld_y, c.out_ld[1] = (int)ld_copy;
  return c;
}

struct Problem {
  BatchData batch;
  Tensor x, w, window, g, beta, state, gain, gate, y, copy;

  Problem(const Case &t, const std::vector<BatchData::Run> &runs, int slots)
      : batch(runs), x(t.type, batch.rows(), 3 * t.heads * t.dim, 3 * t.heads * t.dim + 16),
        w(DType::f32, 3 * t.heads * t.dim, t.taps), window(t.type, slots * (t.taps - 1), 3 * t.heads * t.dim),
        g(DType::f32, batch.rows(), t.heads * t.dim, t.heads * t.dim + 4), beta(DType::f32, batch.rows(), t.heads, t.heads + 3),
        state(DType::f32, (int64_t)slots * t.heads * t.dim, t.dim), gain(DType::f32, 1, t.dim),
        gate(t.type, batch.rows(), t.heads * t.dim, t.heads * t.dim + 8), y(t.type, batch.rows(), t.heads * t.dim),
        copy(t.type, batch.rows(), t.heads * t.dim, t.heads * t.dim + 8) {
    x.fill_normal(1, batch.live()), gate.fill_normal(1, batch.live());
    w.fill_normal(0.5f), gain.fill_normal();
    g.fill([&] { return draw_decay(t.decay); }, batch.live());
    beta.fill([] { return uniform(0, 1); }, batch.live());
    for (const auto &run : runs) // other slots stay poison
      if (run.slot_in >= 0)
        fill_slot(t, run.slot_in);
  }
  void fill_slot(const Case &t, int slot) {
    for (int64_t i = 0; i < t.heads * t.dim; ++i)
      for (int v = 0; v < t.dim; ++v)
        state.set((int64_t)slot * t.heads * t.dim + i, v, normal());
    for (int j = 0; j + 1 < t.taps; ++j)
      for (int64_t i = 0; i < window.cols(); ++i)
        window.set(slot * (t.taps - 1) + j, i, normal());
  }

  short_conv::Config conv(const Case &t) const {
    return {.channels = (int)x.cols(),
            .taps = t.taps,
            .ld_x = (int)x.ld(),
            .ld_out = (int)x.cols(),
            .epilogue = t.activation,
            .x_type = t.type,
            .window_type = t.type,
            .out_type = t.type};
  }
  kda::Config recurrence(const Case &t) const {
    return {.heads = t.heads,
            .head_dim = t.dim,
            .ld_qkv = (int)x.cols(),
            .ld_g = (int)g.ld(),
            .ld_beta = (int)beta.ld(),
            .ld_out = (int)g.cols(),
            .chunk = 1,
            .qkv_type = t.type,
            .out_type = t.type};
  }

  void apart(const Case &t, uint32_t tasks) {
    Tensor qkv(t.type, batch.rows(), x.cols()), o(t.type, batch.rows(), g.cols());
    regions()[0] = kSilu;
    k31_short_conv_config = conv(t);
    launch(k31_short_conv_entry, short_conv::Args{x.data(), w.data(), window.data(), batch.view(), qkv.data()}, tasks);
    k31_kda_config = recurrence(t);
    auto part = [&](int i) { return qkv.as<char>() + i * g.cols() * element_bytes(t.type); };
    launch(k31_kda_entry,
           kda::Args{part(0), part(1), part(2), g.as<float>(), beta.as<float>(), state.as<float>(), batch.view(), o.data()},
           tasks);
    set_norm(t.at, t.dim);
    k31_row_config = row_config(t, o.ld(), gate.ld(), y.ld(), copy.ld());
    row::Args args{batch.counts.data(), {}};
    std::vector<void *> inputs{gain.data(), gate.data()};
    inputs.insert(inputs.begin() + t.at, o.data());
    std::copy(inputs.begin(), inputs.end(), args.tail);
    args.tail[3] = y.data(), args.tail[4] = copy.data();
    launch(k31_row_entry, args, tasks);
  }
  void fused(const Case &t, uint32_t tasks) {
    set_norm(t.at, t.dim);
    regions()[2] = kSilu;
    k31_config = {conv(t), recurrence(t), row_config(t, 0, gate.ld(), y.ld(), copy.ld()), 0, t.at};
    k31_config.conv.ld_out = k31_config.kda.ld_qkv = k31_config.kda.ld_out = 0;
    launch(k31_entry,
           kda_decode::Args{x.data(),
                            w.data(),
                            window.data(),
                            g.as<float>(),
                            beta.as<float>(),
                            state.as<float>(),
                            batch.view(),
                            {gain.data(), gate.data(), y.data(), copy.data()}},
           tasks);
  }
};

// Steps of a token each, one of them from nothing and one a fork; then a batch with longer segments too.
const std::vector<BatchData::Run> kSteps = {{7, 1, 1, 1}, {0, 1, -1, 7}, {300, 1, 3, 6}, {30, 1, 8, 8}};
const std::vector<BatchData::Run> kMixed = {{0, 9, -1, 4}, {7, 1, 1, 1}, {12, 3, 3, 6}, {100, 16, 5, 5}, {0, 1, -1, 7}};
constexpr int kSlots = 10;

void expect_same(Tensor &got, Tensor &want, int64_t rows, const char *what) {
  const auto bytes = (size_t)(rows * want.ld() * (int64_t)element_bytes(want.type()));
  EXPECT_EQ(memcmp(got.data(), want.data(), bytes), 0) << what << " differs";
  EXPECT_TRUE(got.untouched_outside(rows)) << what;
}

void check(const Case &t, const std::vector<BatchData::Run> &runs, uint32_t tasks) {
  SCOPED_TRACE(testing::Message() << t.heads << " heads of " << t.dim << ", " << t.taps << " taps, result at " << t.at << ", "
                                  << tasks << " tasks");
  random_engine().seed(11);
  Problem want(t, runs, kSlots);
  Problem got = want;
  want.apart(t, 1);
  got.fused(t, tasks);
  const int64_t live = want.batch.live();
  expect_same(got.y, want.y, live, "the norm"), expect_same(got.copy, want.copy, live, "the recurrence's result");
  expect_same(got.state, want.state, want.state.rows(), "the state");
  expect_same(got.window, want.window, want.window.rows(), "the window");
  for (int64_t i = 0; i < want.y.cols(); ++i)
    ASSERT_TRUE(std::isfinite(got.y.at(live - 1, i)));
}

TEST(KdaDecode, SameBitsAsItsParts) {
  for (const auto &runs : {kSteps, kMixed})
    for (Case t : {Case{3, 16}, Case{2, 128}, Case{12, 64, 2, 1}, Case{1, 48, 8, 2}, Case{2, 256, 4, 0, DType::f32},
                   Case{5, 32, 1, 1, DType::f32, Decay::strong}, Case{2, 128, 4, 0, DType::bf16, Decay::mixed, false}})
      check(t, runs, 3);
}

TEST(KdaDecode, TaskCountChangesNoBit) {
  for (uint32_t tasks : {1u, 2u, 7u, 31u, 100u})
    check({5, 32}, kMixed, tasks);
}

TEST(KdaDecode, NoLiveSegments) {
  Case t{2, 32};
  Problem p(t, kSteps, kSlots);
  Problem before = p;
  p.batch.counts[0] = p.batch.counts[1] = 0;
  p.fused(t, 2);
  expect_same(p.state, before.state, before.state.rows(), "the state");
  expect_same(p.window, before.window, before.window.rows(), "the window");
  EXPECT_TRUE(p.y.untouched_outside(0));
}

} // namespace
