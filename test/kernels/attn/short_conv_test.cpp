// attn.short_conv against its definition in fp64, windows included.
#include "codegen/kernels/attn/short_conv.h"
#include "test/kernels/common/batch.h"
#include "test/kernels/common/fixture.h"
#include "test/kernels/common/regions.h"

using namespace k31::test;
using namespace k31::kernels::short_conv;
extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

float silu(float v) { return v / (1 + std::exp(-v)); }

struct Case {
  int channels, taps;
  DType x_type = DType::bf16, w_type = DType::f32, window_type = DType::bf16, out_type = DType::bf16;
  bool epilogue = true;
};

// Slots 1, 3 and 5 hold windows; 6 and 7 get new ones; 0 and 2 belong to other sequences.
const std::vector<BatchData::Run> kRuns = {{0, 9, -1, 4}, {7, 1, 1, 1}, {2, 2, 3, 6}, {0, 1, -1, 7}, {100, 20, 5, 5}};
constexpr int kSlots = 9;

void check(const Case &t, uint32_t tasks) {
  SCOPED_TRACE(testing::Message() << t.channels << " channels, " << t.taps << " taps, " << tasks << " tasks");
  const int past = t.taps - 1;
  BatchData batch(kRuns);
  Tensor x(t.x_type, batch.rows(), t.channels, t.channels + 5), w(t.w_type, t.channels, t.taps);
  Tensor window(t.window_type, kSlots * past, t.channels), out(t.out_type, batch.rows(), t.channels, t.channels + 7);
  x.fill_normal(1, batch.live());
  w.fill_normal(0.5f);
  for (int slot : {1, 3, 5})
    for (int j = 0; j < past; ++j)
      for (int c = 0; c < t.channels; ++c)
        window.set(slot * past + j, c, normal());
  Tensor before = window;
  regions()[0] = lanewise(1, 1, [](const float *in, float *out) { out[0] = silu(in[0]); });
  k31_config = {batch.rows(), t.channels, t.taps,   (int)x.ld(),   (int)out.ld(),
                t.epilogue,   t.x_type,   t.w_type, t.window_type, t.out_type};
  launch(k31_entry, Args{x.data(), w.data(), window.data(), batch.view(), out.data()}, tasks);

  // Input number i of a segment, negative ones from its window.
  auto input = [&](const k31::kernels::Segment &s, int i, int c) -> double {
    if (i >= 0)
      return x.at(s.row_begin + i, c);
    return s.slot_in < 0 ? 0 : before.at(s.slot_in * past + past + i, c);
  };
  expect_close(
      out, batch.live(),
      [&](int64_t r, int64_t c) {
        const auto &s = batch.segments[batch.row_segment[r]];
        double y = 0;
        for (int j = 0; j < t.taps; ++j)
          y += w.at(c, j) * input(s, (int)r - s.row_begin - past + j, (int)c);
        return t.epilogue ? y / (1 + std::exp(-y)) : y;
      },
      1e-5);
  std::vector<int> writer(kSlots, -1);
  for (int s = 0; s < batch.live_segments(); ++s)
    writer[batch.segments[s].slot_out] = s;
  for (int slot = 0; slot < kSlots; ++slot)
    for (int j = 0; j < past; ++j)
      for (int c = 0; c < t.channels; ++c) {
        float got = window.at(slot * past + j, c), old = before.at(slot * past + j, c);
        if (writer[slot] < 0) {
          ASSERT_TRUE(got == old || (std::isnan(got) && std::isnan(old))) << "slot " << slot << " was written";
          continue;
        }
        const auto &s = batch.segments[writer[slot]];
        double want = input(s, s.length - past + j, c);
        ASSERT_EQ(got, t.window_type == DType::bf16 ? round_bf16((float)want) : (float)want)
            << "slot " << slot << ", input " << j;
      }
  EXPECT_TRUE(window.untouched_outside(window.rows()));
}

TEST(ShortConv, ShapesAndTypes) {
  const DType f = DType::f32, b = DType::bf16;
  for (uint32_t tasks : {1u, 2u, 5u, 40u})
    for (Case t : {Case{200, 4}, Case{64, 4, f, f, f, f}, Case{64, 4, b, f, f, f, false}, Case{5, 4, f, b, f, b}, Case{129, 2},
                   Case{80, 3, f, f, f, f}, Case{300, 8, b, b, b, b}, Case{48, 4, f, f, b, f}})
      check(t, tasks);
}

TEST(ShortConv, ChunksEqualOnePass) {
  const int channels = 96, tokens = 29;
  Tensor x(DType::bf16, tokens, channels), w(DType::f32, channels, 4);
  x.fill_normal();
  w.fill_normal();
  regions()[0] = lanewise(1, 1, [](const float *in, float *out) { out[0] = silu(in[0]); });
  std::vector<Tensor> outs, windows;
  for (const std::vector<int> &cuts : {std::vector<int>{29}, {13, 16}, {1, 2, 3, 1, 1, 11, 10}}) {
    Tensor out(DType::bf16, tokens, channels), window(DType::bf16, 2 * 3, channels);
    int done = 0;
    for (int length : cuts) {
      BatchData batch({{done, length, done ? 1 : -1, 1}}, 0);
      k31_config = {length, channels, 4, channels, channels, 1, DType::bf16, DType::f32, DType::bf16, DType::bf16};
      launch(
          k31_entry,
          Args{x.as<uint16_t>() + done * channels, w.data(), window.data(), batch.view(), out.as<uint16_t>() + done * channels},
          2);
      done += length;
    }
    outs.push_back(out), windows.push_back(window);
  }
  for (size_t i = 1; i < outs.size(); ++i) {
    EXPECT_EQ(std::memcmp(outs[0].data(), outs[i].data(), 2 * tokens * channels), 0);
    EXPECT_EQ(std::memcmp(windows[0].data(), windows[i].data(), 2 * 6 * channels), 0);
  }
}

// An independent implementation's numbers: five tokens, then one more from the carried window.
TEST(ShortConv, ThirdPartyFixture) {
  Fixture fixture("third-party/ops/shortconv.json");
  const int channels = fixture.value<int>("channels"), taps = fixture.value<int>("kernel");
  Tensor w(DType::f32, channels, taps), window(DType::f32, taps - 1, channels);
  w.fill_from(fixture.data("weight"));
  regions()[0] = lanewise(1, 1, [](const float *in, float *out) { out[0] = silu(in[0]); });
  auto run = [&](const char *in, const char *want, int start, int rows) {
    Tensor x(DType::f32, rows, channels), out(DType::f32, rows, channels);
    x.fill_from(fixture.data(in));
    BatchData batch({{start, rows, start ? 0 : -1, 0}}, 0);
    k31_config = {rows, channels, taps, channels, channels, 1, DType::f32, DType::f32, DType::f32, DType::f32};
    launch(k31_entry, Args{x.data(), w.data(), window.data(), batch.view(), out.data()}, 2);
    std::vector<float> y = fixture.data(want);
    expect_close(out, rows, [&](int64_t r, int64_t c) { return y[r * channels + c]; }, 1e-5, want);
  };
  run("in", "out", 0, 5);
  std::vector<float> state = fixture.data("state_after"); // [channels, taps - 1]
  expect_close(window, taps - 1, [&](int64_t j, int64_t c) { return state[c * (taps - 1) + j]; }, 0, "window");
  run("in_next", "out_next", 5, 1);
}

} // namespace
