#include "codegen/kernels/nn/linear.h"
#include "test/kernels/common/regions.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using linear::Args, linear::Config;

extern "C" {
Config k31_config;
extern int32_t k31_vector_bytes;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr DType f32 = DType::f32, bf16 = DType::bf16;

double dot(const Tensor &x, int64_t r, const Tensor &w, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < x.cols(); ++k)
    sum += (double)x.at(r, k) * w.at(n, k);
  return sum;
}
// Row of W behind column `col` of the first (0) or second (1) matrix of a pair.
int64_t pair_row(int64_t col, int which) { return col / 16 * 32 + which * 16 + col % 16; }

struct Case {
  int rows, live, n, k;
  DType x_type = bf16, w_type = bf16, out_type = f32;
  uint32_t tasks = 1;
};

void check_plain(const Case &t) {
  SCOPED_TRACE(::testing::Message() << "live " << t.live << " n " << t.n << " k " << t.k << " types " << (int)t.x_type << " "
                                    << (int)t.w_type << " " << (int)t.out_type << " tasks " << t.tasks);
  Tensor x(t.x_type, t.rows, t.k, t.k + 3), w(t.w_type, t.n, t.k), y(t.out_type, t.rows, t.n, t.n + 5);
  x.fill_normal(1, t.live), w.fill_normal(1 / std::sqrt((float)t.k));
  k31_config = Config{};
  k31_config.rows = t.rows, k31_config.n = t.n, k31_config.k = t.k, k31_config.ld_x = (int)x.ld();
  k31_config.x_type = t.x_type, k31_config.w_type = t.w_type;
  k31_config.out_type[0] = (int)t.out_type, k31_config.out_ld[0] = (int)y.ld();
  int32_t live = t.live;
  Args args{x.data(), w.data(), &live, {y.data()}};
  launch(k31_entry, args, t.tasks);
  expect_close(y, t.live, [&](int64_t r, int64_t c) { return dot(x, r, w, c); }, 2e-5);
}

// Three outputs of other types share out the columns of the sums: the same bits as three products.
void check_parts(int live, int k, DType w_type, uint32_t tasks) {
  constexpr int kCols[] = {48, 16, 21};
  constexpr DType kTypes[] = {bf16, f32, bf16};
  SCOPED_TRACE(::testing::Message() << "live " << live << " k " << k << " w " << (int)w_type << " tasks " << tasks);
  Tensor x(bf16, 20, k, k + 3), w(w_type, 85, k);
  x.fill_normal(1, live), w.fill_normal(1 / std::sqrt((float)k));
  k31_config = Config{};
  k31_config.rows = 20, k31_config.n = 85, k31_config.k = k, k31_config.ld_x = (int)x.ld();
  k31_config.x_type = bf16, k31_config.w_type = w_type;
  Config one = k31_config;
  k31_config.outputs = 3;
  std::vector<Tensor> parts;
  int32_t count = live;
  Args args{x.data(), w.data(), &count, {}};
  for (int i = 0; i < 3; ++i) {
    parts.emplace_back(kTypes[i], 20, kCols[i]);
    k31_config.out_type[i] = (int)kTypes[i], k31_config.out_ld[i] = kCols[i];
    args.tail[i] = parts[i].data();
  }
  launch(k31_entry, args, tasks);
  for (int i = 0, begin = 0; i < 3; begin += kCols[i++]) {
    Tensor alone(kTypes[i], 20, kCols[i]);
    k31_config = one;
    k31_config.n = kCols[i], k31_config.out_type[0] = (int)kTypes[i], k31_config.out_ld[0] = kCols[i];
    Args own{x.data(), (const char *)w.data() + (int64_t)begin * k * (w_type == f32 ? 4 : 2), &count, {alone.data()}};
    launch(k31_entry, own, 1);
    expect_close(parts[i], live, [&](int64_t r, int64_t c) { return alone.at(r, c); }, 0);
  }
}

TEST(Linear, OutputsShareOutColumns) {
  for (int live : {0, 1, 3, 7, 12, 20}) // by tiles of few rows, and by panels where there are AMX tiles
    for (uint32_t tasks : {1u, 4u})
      for (int k : {96, 100})
        check_parts(live, k, bf16, tasks), check_parts(live, k, f32, tasks);
}
TEST(Linear, EveryRowCountOfATile) {
  for (int live = 1; live <= 14; ++live)
    check_plain({.rows = 16, .live = live, .n = 48, .k = 96});
}
TEST(Linear, NarrowVectors) { // the tiles for registers of 32 bytes
  k31_vector_bytes = 32;
  for (int live = 1; live <= 7; ++live)
    for (DType x : {f32, bf16})
      check_plain({.rows = 8, .live = live, .n = 40, .k = 100, .x_type = x, .tasks = 2});
  k31_vector_bytes = 64;
}
TEST(Linear, NoLiveRow) { check_plain({.rows = 4, .live = 0, .n = 16, .k = 32, .tasks = 2}); }
TEST(Linear, Types) {
  for (DType x : {f32, bf16})
    for (DType w : {f32, bf16})
      for (DType out : {f32, bf16})
        check_plain({.rows = 8, .live = 7, .n = 40, .k = 160, .x_type = x, .w_type = w, .out_type = out});
}
TEST(Linear, TailsOfK) {
  for (int k : {1, 8, 15, 16, 17, 31, 32, 33, 47, 48, 63, 100})
    for (DType x : {f32, bf16})
      check_plain({.rows = 5, .live = 5, .n = 16, .k = k, .x_type = x});
}
TEST(Linear, TailsOfN) {
  for (int n : {1, 3, 15, 17, 31, 33, 96})
    check_plain({.rows = 3, .live = 3, .n = n, .k = 64, .tasks = 2});
}
TEST(Linear, TaskCounts) {
  for (uint32_t tasks : {1u, 2u, 3u, 5u, 16u, 64u})
    check_plain({.rows = 8, .live = 6, .n = 70, .k = 64, .tasks = tasks});
}
TEST(Linear, SeveralBlocksOfRows) { // long rows: fewer than the live ones fit a cache block
  for (uint32_t tasks : {1u, 3u})
    check_plain({.rows = 64, .live = 45, .n = 20, .k = 8200, .tasks = tasks});
}

TEST(Linear, RowsDoNotDependOnTheBatch) {
  for (DType type : {f32, bf16}) {
    const int rows = 13, n = 32, k = 100;
    Tensor x(type, rows, k), w(bf16, n, k), all(f32, rows, n);
    x.fill_normal(), w.fill_normal(0.1f);
    k31_config = Config{};
    k31_config.rows = rows, k31_config.n = n, k31_config.k = k, k31_config.ld_x = k, k31_config.x_type = type;
    k31_config.out_ld[0] = n;
    int32_t live = rows, one = 1;
    launch(k31_entry, Args{x.data(), w.data(), &live, {all.data()}}, 2);
    for (int r = 0; r < rows; ++r) {
      Tensor alone(f32, 1, n);
      launch(k31_entry, Args{x.as<char>() + r * k * element_bytes(type), w.data(), &one, {alone.data()}}, 1);
      EXPECT_EQ(0, std::memcmp(alone.data(), all.as<float>() + r * n, n * sizeof(float))) << "row " << r;
    }
  }
}

// All kinds of extra operands, two outputs: out0 = (sum + element) * row_scalar + column, out1 = sum * repeated column + group.
TEST(Linear, EpilogueOperands) {
  for (int n : {32, 96, 72}) {
    const int rows = 6, live = 5, k = 64, period = n / 2, groups = n == 72 ? 9 : 2;
    Tensor x(bf16, rows, k), w(bf16, n, k), element(bf16, rows, n, n + 1), scalar(f32, rows, 1, 2), column(f32, 1, n),
        repeated(bf16, 1, period), group(f32, 1, groups), y0(f32, rows, n, n + 7), y1(bf16, rows, n, n + 9);
    x.fill_normal(1, live), w.fill_normal(0.125f), element.fill_normal(1, live), scalar.fill_normal(1, live),
        column.fill_normal();
    repeated.fill_normal(), group.fill_normal();
    regions()[0] = lanewise(6, 2, [](const float *in, float *out) {
      out[0] = (in[0] + in[1]) * in[2] + in[3];
      out[1] = in[0] * in[4] + in[5];
    });
    k31_config = Config{};
    k31_config.rows = rows, k31_config.n = n, k31_config.k = k, k31_config.ld_x = k, k31_config.epilogue = 1;
    k31_config.extras = 5;
    Tensor *extras[] = {&element, &scalar, &column, &repeated, &group};
    OperandKind kinds[] = {OperandKind::element, OperandKind::row_scalar, OperandKind::column, OperandKind::column,
                           OperandKind::column_group};
    int32_t live_rows = live;
    Args args{x.data(), w.data(), &live_rows, {}};
    for (int i = 0; i < 5; ++i) {
      k31_config.extra_kind[i] = (int)kinds[i], k31_config.extra_type[i] = (int)extras[i]->type();
      k31_config.extra_ld[i] = (int)extras[i]->ld(), k31_config.extra_cols[i] = (int)extras[i]->cols();
      args.tail[i] = extras[i]->data();
    }
    k31_config.outputs = 2;
    k31_config.out_type[0] = (int)f32, k31_config.out_type[1] = (int)bf16;
    k31_config.out_ld[0] = (int)y0.ld(), k31_config.out_ld[1] = (int)y1.ld();
    args.tail[5] = y0.data(), args.tail[6] = y1.data();
    launch(k31_entry, args, 3);
    expect_close(
        y0, live, [&](int64_t r, int64_t c) { return (dot(x, r, w, c) + element.at(r, c)) * scalar.at(r) + column.at(0, c); },
        5e-5, "y0");
    expect_close(
        y1, live,
        [&](int64_t r, int64_t c) { return dot(x, r, w, c) * repeated.at(0, c % period) + group.at(0, c / (n / groups)); }, 5e-5,
        "y1");
  }
}

TEST(Linear, Pair) {
  for (int live : {1, 2, 9})
    for (uint32_t tasks : {1u, 4u}) {
      const int rows = 9, n = 96, k = 50, cols = n / 2;
      Tensor x(bf16, rows, k), w(bf16, n, k), extra(f32, 1, cols), y(f32, rows, cols, cols + 4);
      x.fill_normal(1, live), w.fill_normal(0.2f), extra.fill_normal();
      regions()[0] = lanewise(3, 1, [](const float *in, float *out) { out[0] = in[0] * in[1] + in[2]; });
      k31_config = Config{};
      k31_config.rows = rows, k31_config.n = n, k31_config.k = k, k31_config.ld_x = k, k31_config.pair = 1;
      k31_config.epilogue = 1, k31_config.extras = 1, k31_config.extra_kind[0] = (int)OperandKind::column;
      k31_config.extra_cols[0] = cols, k31_config.out_ld[0] = (int)y.ld();
      int32_t live_rows = live;
      launch(k31_entry, Args{x.data(), w.data(), &live_rows, {extra.data(), y.data()}}, tasks);
      expect_close(
          y, live,
          [&](int64_t r, int64_t c) { return dot(x, r, w, pair_row(c, 0)) * dot(x, r, w, pair_row(c, 1)) + extra.at(0, c); },
          5e-5);
    }
}

} // namespace
