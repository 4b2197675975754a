#include "codegen/kernels/moe/grouped_linear.h"
#include "test/kernels/common/fixture.h"
#include "test/kernels/common/regions.h"
#include "test/kernels/common/tensor.h"
#include <numeric>

using namespace k31::kernels;
using namespace k31::test;
using grouped_linear::Args, grouped_linear::Config;

extern "C" {
Config k31_config;
extern int32_t k31_vector_bytes;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr DType f32 = DType::f32, bf16 = DType::bf16, u8 = DType::u8;

double decode(const Tensor &codes, const Tensor &scales, int64_t row, int64_t col) {
  static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  int byte = (int)codes.at(row, col / 2), code = col % 2 ? byte >> 4 : byte & 15, scale = (int)scales.at(row, col / 32);
  double magnitude = scale == 255 ? NAN : std::ldexp(values[code & 7], scale - 127);
  return code & 8 ? -magnitude : magnitude;
}

// Weights of all experts: [experts * n] rows.
struct Weights {
  bool packed;
  Tensor w, scale; // codes and scales, or bf16/fp32 values
  Weights(int experts, int n, int k, bool packed, DType type = bf16)
      : packed(packed), w(packed ? u8 : type, experts * n, packed ? k / 2 : k), scale(u8, experts * n, packed ? k / 32 : 1) {
    if (packed)
      w.fill([] { return (float)uniform_int(0, 255); }), scale.fill([] { return (float)uniform_int(121, 126); });
    else
      w.fill_normal(0.2f);
  }
  double at(int64_t row, int64_t col) const { return packed ? decode(w, scale, row, col) : w.at(row, col); }
};

struct Case {
  std::vector<int> counts; // rows of each expert
  int n, k;
  bool packed = true;
  DType x_type = bf16, w_type = bf16, out_type = f32;
  uint32_t tasks = 1;
  int pair = 0, epilogue = 0;
};

// Rows past the last expert stay poisoned in x and must stay unwritten in the result.
void check(const Case &t) {
  SCOPED_TRACE(::testing::Message() << ::testing::PrintToString(t.counts) << " n " << t.n << " k " << t.k << " packed "
                                    << t.packed << " tasks " << t.tasks << " pair " << t.pair);
  const int experts = (int)t.counts.size(), cols = t.pair ? t.n / 2 : t.n;
  std::vector<int32_t> offsets{0};
  std::vector<int> expert_of;
  for (int e = 0; e < experts; ++e) {
    offsets.push_back(offsets.back() + t.counts[e]);
    expert_of.insert(expert_of.end(), t.counts[e], e);
  }
  const int live = offsets.back(), rows = live + 3;
  Tensor x(t.x_type, rows, t.k, t.k + 2), y(t.out_type, rows, cols, cols + 3);
  x.fill_normal(1, live);
  Weights w(experts, t.n, t.k, t.packed, t.w_type);
  k31_config = {rows, experts, t.n, t.k, t.packed, t.pair, t.epilogue, (int)x.ld(), (int)y.ld(), t.x_type, t.w_type, t.out_type};
  regions()[0] = t.pair ? lanewise(2, 1, [](const float *in, float *out) { out[0] = in[0] * in[1]; })
                        : lanewise(1, 1, [](const float *in, float *out) { out[0] = 2 * in[0] + 1; });
  Args args{x.data(), w.w.data(), {}};
  int at = 0;
  if (t.packed)
    args.tail[at++] = w.scale.data();
  args.tail[at++] = offsets.data(), args.tail[at] = y.data();
  launch(k31_entry, args, t.tasks);
  auto dot = [&](int64_t r, int64_t row) {
    double sum = 0;
    for (int k = 0; k < t.k; ++k)
      sum += x.at(r, k) * w.at((int64_t)expert_of[r] * t.n + row, k);
    return sum;
  };
  expect_close(
      y, live,
      [&](int64_t r, int64_t c) {
        if (t.pair)
          return dot(r, c / 16 * 32 + c % 16) * dot(r, c / 16 * 32 + 16 + c % 16);
        return t.epilogue ? 2 * dot(r, c) + 1 : dot(r, c);
      },
      t.pair ? 1e-3 : 1e-4);
}

TEST(GroupedLinear, EveryRowCount) {
  for (int m = 1; m <= 257; ++m)
    check({.counts = {m}, .n = 32, .k = 64, .tasks = 2});
  check({.counts = {257}, .n = 16, .k = 96, .tasks = 3});
}
TEST(GroupedLinear, NarrowVectors) { // another decoder and other tiles, for registers of 32 bytes
  k31_vector_bytes = 32;
  for (DType x : {f32, bf16}) {
    check({.counts = {1, 2, 3, 0, 7}, .n = 40, .k = 96, .x_type = x, .tasks = 2});
    check({.counts = {1, 2, 3, 0, 7}, .n = 40, .k = 96, .packed = false, .x_type = x, .tasks = 2});
  }
  k31_vector_bytes = 64;
}
TEST(GroupedLinear, EmptyExperts) {
  check({.counts = {0, 3, 0, 0, 5, 1, 0}, .n = 48, .k = 64, .tasks = 4});
  check({.counts = {0, 0, 0}, .n = 32, .k = 32, .tasks = 2});
}
TEST(GroupedLinear, OneExpertTakesAll) {
  for (uint32_t tasks : {1u, 5u, 40u})
    check({.counts = {0, 0, 37, 0}, .n = 80, .k = 32, .tasks = tasks});
}
TEST(GroupedLinear, TaskCounts) {
  for (uint32_t tasks : {1u, 2u, 3u, 7u, 16u, 100u})
    check({.counts = {2, 0, 9, 1}, .n = 64, .k = 64, .tasks = tasks});
}
TEST(GroupedLinear, Types) {
  for (DType x : {f32, bf16})
    for (DType out : {f32, bf16}) {
      check({.counts = {1, 2, 3, 4}, .n = 32, .k = 96, .x_type = x, .out_type = out, .tasks = 2});
      for (DType w : {f32, bf16})
        check({.counts = {7, 0, 2}, .n = 32, .k = 50, .packed = false, .x_type = x, .w_type = w, .out_type = out, .tasks = 2});
    }
}
TEST(GroupedLinear, ScalesOfLongRowsComeInSeveralChunks) { // 16 scales are widened together
  for (int blocks : {1, 15, 16, 17, 33})
    check({.counts = {3, 2}, .n = 16, .k = 32 * blocks, .tasks = 2});
}
TEST(GroupedLinear, TailsOfN) {
  for (int n : {1, 15, 17, 40})
    check({.counts = {2, 5}, .n = n, .k = 64, .tasks = 3});
}
TEST(GroupedLinear, PairAndEpilogue) {
  for (bool packed : {true, false}) {
    check({.counts = {5, 0, 1}, .n = 96, .k = 64, .packed = packed, .tasks = 3, .pair = 1, .epilogue = 1});
    check({.counts = {5, 0, 1}, .n = 48, .k = 64, .packed = packed, .tasks = 3, .epilogue = 1});
  }
}

// All codes are 1 and all x equal, so that nothing but the scales decides: 255 is NaN, not infinity, and 0 is 2^-127, not zero.
TEST(GroupedLinear, EndsOfTheScaleRange) {
  const int k = 64, n = 16;
  Tensor x(f32, 1, k), y(f32, 1, n);
  x.fill([] { return 0x1p100f; });
  Weights w(1, n, k, true);
  w.w.fill([] { return (float)0x22; }), w.scale.fill([] { return 0.0f; });
  w.scale.set(3, 1, 255);
  int32_t offsets[] = {0, 1};
  k31_config = {1, 1, n, k, 1, 0, 0, k, n, f32, bf16, f32};
  launch(k31_entry, Args{x.data(), w.w.data(), {w.scale.data(), offsets, y.data()}}, 1);
  for (int c = 0; c < n; ++c) {
    if (c == 3)
      EXPECT_TRUE(std::isnan(y.at(0, c))) << y.at(0, c);
    else
      EXPECT_EQ(y.at(0, c), k * 0x1p-27f) << c;
  }
}

TEST(GroupedLinear, TasksShareTheWorkWithoutOverlap) {
  const int k = 32, n = 80;
  for (std::vector<int32_t> offsets : {std::vector<int32_t>{0, 0, 5, 6, 6, 23}, {0, 0, 0, 9, 9, 9}})
    for (uint32_t tasks : {1u, 2u, 3u, 8u, 50u}) {
      const int rows = offsets.back();
      Tensor x(bf16, rows, k), y(f32, rows, n);
      x.fill_normal();
      Weights w(5, n, k, true);
      k31_config = {rows, 5, n, k, 1, 0, 1, k, n, bf16, bf16, f32};
      int calls = 0, busiest = 0; // one call of the region is one row by 16 columns
      regions()[0] = [&](const float *in, float *out) { ++calls, std::memcpy(out, in, 16 * sizeof(float)); };
      Args args{x.data(), w.w.data(), {w.scale.data(), offsets.data(), y.data()}};
      for (uint32_t t = 0; t < tasks; ++t) {
        int before = calls;
        k31_entry(&args, t, tasks);
        busiest = std::max(busiest, calls - before);
      }
      EXPECT_EQ(calls, rows * n / 16) << tasks << " tasks";
      if (tasks == 2)
        EXPECT_LE(busiest, calls * 3 / 4) << "most of the work went to one of two tasks";
    }
}

TEST(GroupedLinear, RowsDoNotDependOnTheBatch) {
  for (bool packed : {true, false}) {
    const int rows = 11, n = 16, k = 96;
    Tensor x(bf16, rows, k), all(f32, rows, n);
    x.fill_normal();
    Weights w(1, n, k, packed);
    k31_config = {rows, 1, n, k, packed, 0, 0, k, n, bf16, bf16, f32};
    auto run = [&](const void *from, int32_t count, void *to) {
      int32_t offsets[] = {0, count};
      Args args = packed ? Args{from, w.w.data(), {w.scale.data(), offsets, to}} : Args{from, w.w.data(), {offsets, to}};
      launch(k31_entry, args, 1);
    };
    run(x.data(), rows, all.data());
    for (int r = 0; r < rows; ++r) {
      Tensor alone(f32, 1, n);
      run(x.as<uint16_t>() + r * k, 1, alone.data());
      EXPECT_EQ(0, std::memcmp(alone.data(), all.as<float>() + r * n, n * sizeof(float))) << "row " << r;
    }
  }
}

// Released expert bytes: x holds one unit vector a column, so that the sums are the decoded weights themselves.
TEST(GroupedLinearFixture, Mxfp4) {
  Fixture f("third-party/mxfp4.json");
  const int n = f.value<int>("rows"), k = f.value<int>("logical_width"), columns = 64;
  Tensor codes(u8, n, k / 2), scales(u8, n, k / 32);
  codes.fill_from(f.data("packed")), scales.fill_from(f.data("scales"));
  std::vector<float> want = f.data("expected");
  for (auto [type, vector_bytes] : {std::pair{f32, 64}, {bf16, 64}, {bf16, 32}})
    for (int begin : {0, 1024, k - columns}) { // columns [begin, begin + 64)
      Tensor x(type, columns, k), y(f32, columns, n);
      x.fill([] { return 0.0f; });
      for (int r = 0; r < columns; ++r)
        x.set(r, begin + r, 1);
      int32_t offsets[] = {0, columns};
      k31_config = {columns, 1, n, k, 1, 0, 0, k, n, type, bf16, f32};
      k31_vector_bytes = vector_bytes;
      launch(k31_entry, Args{x.data(), codes.data(), {scales.data(), offsets, y.data()}}, 2);
      expect_close(y, columns, [&](int64_t r, int64_t c) { return want[c * k + begin + r]; }, 0);
    }
  k31_vector_bytes = 64;
}

} // namespace
