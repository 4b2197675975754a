#include "codegen/kernels/nn/row.h"
#include "test/kernels/common/fixture.h"
#include "test/kernels/common/regions.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using row::Args, row::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr DType f32 = DType::f32, bf16 = DType::bf16;

struct Input {
  Tensor *tensor;
  OperandKind kind;
};

// Fills k31_config and runs all tasks.
void run(int cols, int groups, std::vector<Input> inputs, std::vector<Tensor *> outputs, std::vector<int> sums, int32_t live,
         uint32_t tasks) {
  k31_config = Config{};
  k31_config.rows = (int)outputs[0]->rows(), k31_config.cols = cols, k31_config.groups = groups;
  k31_config.inputs = (int)inputs.size(), k31_config.outputs = (int)outputs.size(), k31_config.phases = (int)sums.size();
  Args args{&live, {}};
  int at = 0;
  for (auto &[tensor, kind] : inputs) {
    k31_config.kind[at] = (int)kind, k31_config.type[at] = (int)tensor->type();
    k31_config.ld[at] = (int)tensor->ld(), k31_config.length[at] = (int)tensor->cols();
    args.tail[at++] = tensor->data();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    k31_config.out_type[i] = (int)outputs[i]->type(), k31_config.out_ld[i] = (int)outputs[i]->ld();
    args.tail[at++] = outputs[i]->data();
  }
  for (size_t p = 0; p < sums.size(); ++p)
    k31_config.sums[p] = sums[p];
  launch(k31_entry, args, tasks);
}

// RMSNorm as one phase: sum of squares, then x * rsqrt(sum / width + eps) * gain.
void set_rms_norm(int width, double eps) {
  regions()[0] = lanewise(2, 1, [](const float *in, float *out) { out[0] = in[0] * in[0]; });
  regions()[1] =
      lanewise(3, 1, [=](const float *in, float *out) { out[0] = in[0] / std::sqrt(in[2] / (float)width + (float)eps) * in[1]; });
}

TEST(Row, MapOfAllKinds) {
  for (int cols : {16, 5, 257, 512, 1000})
    for (uint32_t tasks : {1u, 2u, 7u, 33u}) {
      const int rows = 5, live = 4;
      const int period = cols % 8 == 0 ? cols / 4 : cols, groups = cols % 8 == 0 ? 8 : 1;
      Tensor a(bf16, rows, cols, cols + 3), b(f32, rows, 1, 4), c(f32, 1, period), d(bf16, 1, groups),
          y0(f32, rows, cols, cols + 1), y1(bf16, rows, cols);
      a.fill_normal(1, live), b.fill_normal(1, live), c.fill_normal(), d.fill_normal();
      regions()[0] = lanewise(4, 2, [](const float *in, float *out) {
        out[0] = in[0] * in[1] + in[2];
        out[1] = in[0] - in[3];
      });
      run(cols, 1,
          {{&a, OperandKind::element}, {&b, OperandKind::row_scalar}, {&c, OperandKind::column}, {&d, OperandKind::column_group}},
          {&y0, &y1}, {}, live, tasks);
      expect_close(
          y0, live, [&](int64_t r, int64_t i) { return (double)a.at(r, i) * b.at(r) + c.at(0, i % period); }, 1e-5, "y0");
      expect_close(y1, live, [&](int64_t r, int64_t i) { return (double)a.at(r, i) - d.at(0, i / (cols / groups)); }, 1e-6, "y1");
    }
}

TEST(Row, GroupedNorm) { // one norm a group of columns, the gain of one group repeated
  for (int width : {1, 8, 16, 24, 37, 128})
    for (int groups : {1, 3})
      for (uint32_t tasks : {1u, 2u, 5u}) {
        const int rows = 4, live = 3, cols = width * groups;
        Tensor x(f32, rows, cols, cols + 2), gain(bf16, 1, width), y(bf16, rows, cols, cols + 6);
        x.fill_normal(1, live), gain.fill_normal();
        set_rms_norm(width, 1e-5);
        run(cols, groups, {{&x, OperandKind::element}, {&gain, OperandKind::column}}, {&y}, {1}, live, tasks);
        expect_close(
            y, live,
            [&](int64_t r, int64_t c) {
              double squares = 0;
              for (int64_t i = c / width * width; i < (c / width + 1) * width; ++i)
                squares += (double)x.at(r, i) * x.at(r, i);
              return x.at(r, c) / std::sqrt(squares / width + 1e-5) * gain.at(0, c % width);
            },
            2e-5);
      }
}

TEST(Row, FourPhasesSeeTheSumsOfEarlierOnes) {
  const int rows = 3, live = 3, cols = 50;
  Tensor x(f32, rows, cols), y(f32, rows, cols);
  x.fill_normal();
  // in: x, then sums s0 s1 | s2 | s3 | s4
  regions()[0] = lanewise(1, 2, [](const float *in, float *out) { out[0] = in[0], out[1] = 1; });
  regions()[1] = lanewise(3, 1, [](const float *in, float *out) { out[0] = (in[0] - in[1] / in[2]) * (in[0] - in[1] / in[2]); });
  regions()[2] = lanewise(4, 1, [](const float *in, float *out) { out[0] = in[0] * in[3]; });
  regions()[3] = lanewise(5, 1, [](const float *in, float *out) { out[0] = in[0] * in[0] + in[4]; });
  regions()[4] = lanewise(6, 1, [](const float *in, float *out) { out[0] = in[0] + in[5] + in[4] + in[2]; });
  run(cols, 1, {{&x, OperandKind::element}}, {&y}, {2, 1, 1, 1}, live, 2);
  expect_close(
      y, live,
      [&](int64_t r, int64_t c) {
        double s0 = 0, s2 = 0, s3 = 0, s4 = 0;
        for (int i = 0; i < cols; ++i)
          s0 += x.at(r, i);
        for (int i = 0; i < cols; ++i)
          s2 += (x.at(r, i) - s0 / cols) * (x.at(r, i) - s0 / cols);
        for (int i = 0; i < cols; ++i)
          s3 += x.at(r, i) * s2;
        for (int i = 0; i < cols; ++i)
          s4 += (double)x.at(r, i) * x.at(r, i) + s3;
        return x.at(r, c) + s4 + s3 + cols;
      },
      0.05);
}

TEST(Row, NoLiveRow) {
  Tensor x(f32, 2, 16), gain(f32, 1, 16), y(f32, 2, 16);
  set_rms_norm(16, 1e-5);
  run(16, 1, {{&x, OperandKind::element}, {&gain, OperandKind::column}}, {&y}, {1}, 0, 3);
  EXPECT_TRUE(y.untouched_outside(0));
}

TEST(RowFixture, RmsNorm) {
  Fixture f("third-party/ops/rmsnorm.json");
  int rows = (int)f.shape("in")[0], cols = (int)f.shape("in")[1];
  Tensor x(f32, rows, cols), gain(f32, 1, cols), y(f32, rows, cols), want(f32, rows, cols);
  x.fill_from(f.data("in")), gain.fill_from(f.data("weight")), want.fill_from(f.data("out"));
  set_rms_norm(cols, f.value("eps"));
  run(cols, 1, {{&x, OperandKind::element}, {&gain, OperandKind::column}}, {&y}, {1}, rows, 2);
  expect_close(y, rows, [&](int64_t r, int64_t c) { return want.at(r, c); }, 1e-5);
}

TEST(RowFixture,
     SituGlu) { // out = beta tanh(g / beta) sigmoid(g) * linear_beta tanh(u / linear_beta), g and u two halves of `in`
  Fixture f("third-party/ops/situ_glu.json");
  float beta = f.value("beta"), linear_beta = f.value("linear_beta");
  int rows = (int)f.shape("out")[0], cols = (int)f.shape("out")[1];
  std::vector<float> both = f.data("in");
  Tensor gate(f32, rows, cols), up(f32, rows, cols), y(f32, rows, cols), want(f32, rows, cols);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c)
      gate.set(r, c, both[r * 2 * cols + c]), up.set(r, c, both[r * 2 * cols + cols + c]);
  want.fill_from(f.data("out"));
  regions()[0] = lanewise(2, 1, [=](const float *in, float *out) {
    float capped = beta * std::tanh(in[0] / beta), linear = linear_beta * std::tanh(in[1] / linear_beta);
    out[0] = capped / (1 + std::exp(-in[0])) * linear;
  });
  run(cols, 1, {{&gate, OperandKind::element}, {&up, OperandKind::element}}, {&y}, {}, rows, 2);
  expect_close(y, rows, [&](int64_t r, int64_t c) { return want.at(r, c); }, 1e-4);
}

TEST(RowFixture, AttentionResidualMix) { // 9 sources: sum of squares and weighted sum of each, then a softmax of 9 scores
  Fixture f("third-party/ops/attnres.json");
  float eps = f.value("eps");
  int tokens = (int)f.shape("out")[0], cols = (int)f.shape("out")[1], snapshots = (int)f.shape("block_residual")[1];
  int sources = snapshots + 1;
  std::vector<float> bank = f.data("block_residual");
  std::vector<Tensor> s(sources, Tensor(f32, tokens, cols));
  for (int j = 0; j < snapshots; ++j)
    for (int t = 0; t < tokens; ++t)
      for (int c = 0; c < cols; ++c)
        s[j].set(t, c, bank[(t * snapshots + j) * cols + c]);
  s[snapshots].fill_from(f.data("prefix_sum"));
  Tensor norm(f32, 1, cols), proj(f32, 1, cols), y(f32, tokens, cols), want(f32, tokens, cols);
  norm.fill_from(f.data("norm_weight")), proj.fill_from(f.data("proj_weight")), want.fill_from(f.data("out"));
  regions()[0] = lanewise(sources + 2, 2 * sources, [=](const float *in, float *out) {
    for (int j = 0; j < sources; ++j)
      out[2 * j] = in[j] * in[j], out[2 * j + 1] = in[j] * in[sources] * in[sources + 1];
  });
  regions()[1] = lanewise(3 * sources + 2, 1, [=](const float *in, float *out) {
    const float *sum = in + sources + 2;
    float weight = 0, total = 0;
    for (int j = 0; j < sources; ++j) {
      float e = std::exp(sum[2 * j + 1] / std::sqrt(sum[2 * j] / (float)cols + eps));
      weight += e, total += e * in[j];
    }
    out[0] = total / weight;
  });
  std::vector<Input> inputs;
  for (Tensor &source : s)
    inputs.push_back({&source, OperandKind::element});
  inputs.push_back({&norm, OperandKind::column}), inputs.push_back({&proj, OperandKind::column});
  run(cols, 1, inputs, {&y}, {2 * sources}, tokens, 3);
  expect_close(y, tokens, [&](int64_t r, int64_t c) { return want.at(r, c); }, 1e-5);
}

} // namespace
