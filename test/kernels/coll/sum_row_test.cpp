// Ranks as threads: sums to the last bit, a norm or an addition on them, over the same areas one after the other.
#include "codegen/kernels/coll/sum_row.h"
#include "test/kernels/coll/peer_ranks.h"
#include "test/kernels/common/regions.h"
#include <cmath>

using namespace k31::kernels;
using namespace k31::test;
using sum_row::Args, sum_row::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Shape {
  int rows, cols;
  DType type;
  bool scatter;
};

// The sum is input 1 of three: y0 = normed sum times gain, y1 = prefix + sum. Its squares are what a phase adds up.
void run(PeerRanks &ranks, const Shape &shape, const std::vector<int> &live) {
  const int n = ranks.form.ranks, rows = shape.rows, cols = shape.cols;
  SCOPED_TRACE(::testing::Message() << n << " ranks, " << rows << " x " << cols << ", type " << (int)shape.type
                                    << (shape.scatter ? ", scatter" : ""));
  Config c;
  c.rows = rows, c.at = 1;
  c.peer = {.form = shape.scatter ? peer::scatter : peer::sum,
            .ranks = n,
            .words = cols * (shape.type == DType::f32 ? 4 : 2) / 16,
            .blocks = ranks.form.blocks,
            .region = ranks.form.region,
            .type = shape.type};
  c.row.cols = cols, c.row.inputs = 3, c.row.outputs = 2, c.row.phases = 1, c.row.sums[0] = 1;
  const int ld = cols + 3; // of the prefix
  c.row.kind[2] = (int)OperandKind::column, c.row.length[2] = cols;
  c.row.ld[0] = ld, c.row.ld[1] = cols, c.row.out_ld[0] = cols, c.row.out_ld[1] = cols + 5;
  c.row.type[1] = (int)shape.type, c.row.type[2] = (int)DType::bf16, c.row.out_type[1] = (int)DType::bf16;
  k31_config = c;
  regions()[0] = lanewise(3, 1, [](const float *in, float *out) { out[0] = in[1] * in[1]; });
  regions()[1] = lanewise(4, 2, [=](const float *in, float *out) {
    out[0] = in[1] / std::sqrt(in[3] / (float)cols + 1e-5f) * in[2], out[1] = in[0] + in[1];
  });

  auto x = tensors(n, shape.type, cols, shape.scatter ? n * rows : rows), sum = tensors(n, shape.type, cols, rows);
  std::vector<Tensor> prefix, y0, y1;
  Tensor gain(DType::bf16, 1, cols);
  gain.fill_normal();
  for (int r = 0; r < n; ++r) {
    prefix.emplace_back(DType::f32, rows, cols, ld), y0.emplace_back(DType::f32, rows, cols);
    y1.emplace_back(DType::bf16, rows, cols, cols + 5);
    prefix[r].fill_normal(1, live[r]), x[r].fill([] { return normal(1); });
  }
  ranks.run([&](int r, void *area) {
    Args args{x[r].data(), sum[r].data(), &live[r], {prefix[r].data(), gain.data(), y0[r].data(), y1[r].data(), area}};
    k31_entry(&args, 0, 1);
    k31_entry(&args, 1, 2); // one task does it all
  });
  for (int r = 0; r < n; ++r) {
    const int64_t first = shape.scatter ? r * rows : 0;
    Tensor rounded(shape.type, rows, cols);
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t i = 0; i < cols; ++i)
        rounded.set(t, i, sum_at(x, i, first + t));
    expect_close(sum[r], rows, [&](int64_t t, int64_t i) { return rounded.at(t, i); }, 0, "sum");
    expect_close(
        y0[r], live[r],
        [&](int64_t t, int64_t i) {
          double squares = 0;
          for (int64_t j = 0; j < cols; ++j)
            squares += rounded.at(t, j) * rounded.at(t, j);
          return rounded.at(t, i) / std::sqrt(squares / cols + 1e-5) * gain.at(0, i);
        },
        1e-5, "y0");
    expect_close(y1[r], live[r], [&](int64_t t, int64_t i) { return prefix[r].at(t, i) + rounded.at(t, i); }, 1e-6, "y1");
  }
}

TEST(SumRow, SumsThenRows) {
  for (int n : {2, 3, 8}) {
    PeerRanks ranks(n, 40); // words of a slot: one row of 160 fp32 values, several of shorter ones
    for (DType type : {DType::f32, DType::bf16})
      for (int cols : {8, 40, 160})
        for (int rows : {1, 2, 7}) {
          const int live = rows == 7 ? 5 : rows;
          run(ranks, {rows, cols, type, false}, std::vector<int>(n, live));
          std::vector<int> shares; // ranks differ in what of their share is live; the last ones have nothing
          for (int r = 0; r < n; ++r)
            shares.push_back(std::max(0, rows - r));
          run(ranks, {rows, cols, type, true}, shares);
        }
  }
}

// A rank that does not come: the wait ends, says so, and neither sum nor row op have happened.
TEST(SumRow, EndsAWait) {
  PeerRanks ranks(2, 8);
  void *area = ranks.areas[0].get();
  auto &table = *static_cast<PeerTable *>(area);
  table.wait = [](PeerTable *own, uint32_t looks) { return looks < 10 || (own->failed = 1, false); };
  Config c;
  c.rows = 2;
  c.peer = {.ranks = 2, .words = 2, .blocks = 1, .region = 8, .type = DType::f32};
  c.row.cols = 8, c.row.inputs = 1, c.row.outputs = 1, c.row.ld[0] = c.row.out_ld[0] = 8;
  k31_config = c;
  regions()[0] = lanewise(1, 1, [](const float *in, float *out) { out[0] = 2 * in[0]; });
  Tensor x(DType::f32, 2, 8), sum(DType::f32, 2, 8), y(DType::f32, 2, 8); // the last two hold NaN
  x.fill([] { return normal(1); });
  const int32_t live = 2;
  Args args{x.data(), sum.data(), &live, {y.data(), area}};
  k31_entry(&args, 0, 1);
  EXPECT_EQ(table.failed, 1);
  EXPECT_TRUE(std::isnan(sum.at(0, 0)) && std::isnan(y.at(0, 0)));
}

// Without the others the table names the own area for all ranks: nothing is waited for, and the sum is what this one adds.
TEST(SumRow, AloneTheSumIsTheOwnAddend) {
  PeerRanks ranks(2, 8);
  void *area = ranks.areas[1].get();
  auto &table = *static_cast<PeerTable *>(area);
  table.area[0] = area;
  table.wait = [](PeerTable *own, uint32_t) { return own->failed = 1, false; };
  Config c;
  c.rows = 2;
  c.peer = {.ranks = 2, .words = 2, .blocks = 1, .region = 8, .type = DType::f32};
  c.row.cols = 8, c.row.inputs = 1, c.row.outputs = 1, c.row.ld[0] = c.row.out_ld[0] = 8;
  k31_config = c;
  regions()[0] = lanewise(1, 1, [](const float *in, float *out) { out[0] = 2 * in[0]; });
  Tensor x(DType::f32, 2, 8), sum(DType::f32, 2, 8), y(DType::f32, 2, 8);
  const int32_t live = 1;
  for (int turn = 0; turn < 3; ++turn) {
    x.fill([] { return normal(1); });
    Args args{x.data(), sum.data(), &live, {y.data(), area}};
    k31_entry(&args, 0, 1);
    expect_close(sum, 2, [&](int64_t t, int64_t i) { return x.at(t, i); }, 0);
    expect_close(y, 1, [&](int64_t t, int64_t i) { return 2 * x.at(t, i); }, 0);
  }
  EXPECT_EQ(table.failed, 0);
}

} // namespace
