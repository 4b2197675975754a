#include "codegen/kernels/moe/permute.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using permute::Args, permute::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

template <class Choose>
void check(int rows, int live, int top_k, int first, int experts, DType type, uint32_t tasks, Choose choose, int rank = -1) {
  SCOPED_TRACE(::testing::Message() << "live " << live << " first " << first << " experts " << experts << " tasks " << tasks);
  const int cols = 13;
  Tensor x(type, rows, cols, cols + 4), out(type, rows * top_k, cols), ids(DType::i32, rows, top_k);
  Tensor offsets(DType::i32, 1, experts + 1), slot(DType::i32, rows, top_k);
  x.fill_normal(1, live), ids.fill([&] { return (float)choose(); }, live);
  const bool ranked = rank >= 0; // the first expert follows from the coordinate
  k31_config = {rows, cols, top_k, ranked ? 0 : first, experts, (int)x.ld(), type, ranked};
  int32_t live_rows = live, coordinate = rank;
  Args args{x.data(), ids.as<int32_t>(), &live_rows, {}};
  void **next = args.tail;
  if (ranked)
    *next++ = &coordinate;
  *next++ = out.data(), *next++ = offsets.data(), *next++ = slot.data();
  launch(k31_entry, args, tasks);

  std::vector<int> source; // token of each grouped row
  std::vector<int> want_offsets{0}, want_slot(rows * top_k, -1);
  for (int e = first; e < first + experts; ++e) {
    for (int t = 0; t < live; ++t)
      for (int i = 0; i < top_k; ++i)
        if (ids.at(t, i) == e)
          want_slot[t * top_k + i] = (int)source.size(), source.push_back(t);
    want_offsets.push_back((int)source.size());
  }
  expect_close(offsets, 1, [&](int64_t, int64_t e) { return want_offsets[e]; }, 0, "offsets");
  expect_close(slot, live, [&](int64_t t, int64_t i) { return want_slot[t * top_k + i]; }, 0, "slot");
  expect_close(out, (int64_t)source.size(), [&](int64_t r, int64_t c) { return x.at(source[r], c); }, 0, "out");
}

TEST(Permute, RandomChoices) {
  for (DType type : {DType::f32, DType::bf16})
    for (uint32_t tasks : {1u, 4u}) {
      check(9, 7, 3, 0, 8, type, tasks, [] { return uniform_int(0, 7); });
      check(9, 9, 3, 4, 4, type, tasks, [] { return uniform_int(0, 11); }); // most experts live elsewhere
    }
}
TEST(Permute, ExpertsOfACoordinate) {
  for (int rank : {0, 1, 2})
    check(9, 7, 3, rank * 3, 3, DType::bf16, 1, [] { return uniform_int(0, 7); }, rank); // the third rank lacks one expert
}
// Each rank's live rows stand at the front of its own part; what lies between is nobody's.
TEST(Permute, RowsOfSeveralRanks) {
  const int groups = 3, capacity = 4, rows = groups * capacity, top_k = 2, experts = 3, cols = 5;
  const int32_t live[groups] = {2, 0, 4};
  Tensor x(DType::f32, rows, cols, cols), out(DType::f32, rows * top_k, cols), ids(DType::i32, rows, top_k);
  Tensor offsets(DType::i32, 1, experts + 1), slot(DType::i32, rows, top_k);
  x.fill([] { return (float)uniform_int(-1000, 1000); }), ids.fill([] { return (float)uniform_int(0, experts - 1); });
  k31_config = {rows, cols, top_k, 0, experts, cols, DType::f32, 0, groups, capacity};
  launch(k31_entry, Args{x.data(), ids.as<int32_t>(), live, {out.data(), offsets.data(), slot.data()}}, 2);
  std::vector<int> source, want_offsets{0};
  for (int e = 0; e < experts; ++e) {
    for (int g = 0; g < groups; ++g)
      for (int t = g * capacity; t < g * capacity + live[g]; ++t)
        for (int i = 0; i < top_k; ++i)
          if (ids.at(t, i) == e) {
            EXPECT_EQ(slot.at(t, i), source.size()) << "row " << t << " choice " << i;
            source.push_back(t);
          }
    want_offsets.push_back((int)source.size());
  }
  EXPECT_EQ(source.size(), 12u);
  expect_close(offsets, 1, [&](int64_t, int64_t e) { return want_offsets[e]; }, 0, "offsets");
  expect_close(out, 12, [&](int64_t r, int64_t c) { return x.at(source[r], c); }, 0, "out");
}
TEST(Permute, OneExpertTakesAll) {
  check(6, 6, 2, 0, 5, DType::f32, 1, [] { return 3; });
}
TEST(Permute, NoLocalChoice) {
  check(4, 3, 2, 10, 3, DType::bf16, 1, [] { return uniform_int(0, 9); });
}
TEST(Permute, DeadRowsChooseNothing) {
  check(5, 0, 2, 0, 3, DType::bf16, 2, [] { return 0; });
}
TEST(Permute, InvalidIdsChooseNothing) {
  check(4, 4, 2, 0, 3, DType::f32, 1, [] { return uniform_int(0, 1) ? -1 : 3; });
}

} // namespace
