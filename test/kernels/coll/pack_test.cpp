#include "codegen/kernels/coll/pack.h"
#include "test/kernels/common/tensor.h"

using namespace k31::kernels;
using namespace k31::test;
using pack::Args, pack::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Setting {
  int size, share, top_k;
  std::vector<int> live; // of each group
  int capacity = 5;      // rows of a group
  int coordinate = -1;   // of this rank on ep; -1: without
  DType type = DType::bf16;
  uint32_t tasks = 1;
};

template <class Choose> void check(const Setting &s, Choose choose) {
  SCOPED_TRACE(::testing::Message() << s.size << " ranks of " << s.share << " experts, coordinate " << s.coordinate);
  const int groups = (int)s.live.size(), rows = groups * s.capacity, cols = 9;
  Tensor x(s.type, rows, cols, cols + 3), ids(DType::i32, rows, s.top_k), weights(DType::f32, rows, s.top_k);
  std::vector<int> alive; // rows, in order
  for (int g = 0; g < groups; ++g)
    for (int i = 0; i < s.live[g]; ++i)
      alive.push_back(g * s.capacity + i);
  for (int row : alive) {
    for (int c = 0; c < cols; ++c)
      x.set(row, c, normal());
    for (int i = 0; i < s.top_k; ++i)
      ids.set(row, i, (float)choose()), weights.set(row, i, uniform(0, 1));
  }
  const bool ranked = s.coordinate >= 0;
  k31_config = {rows, rows, cols, s.top_k, (int)x.ld(), s.size, s.share, s.type, ranked, groups, groups > 1 ? s.capacity : 0};
  const PieceForm form = k31_config.form();
  Tensor pieces(DType::u8, s.size, form.bytes()), units(DType::i32, 1, s.size), slot(DType::i32, rows, s.size);
  std::vector<int32_t> live(s.live.begin(), s.live.end());
  int32_t coordinate = s.coordinate;
  Args args{x.data(), ids.as<int32_t>(), weights.as<float>(), live.data(), {}};
  void **next = args.tail;
  if (ranked)
    *next++ = &coordinate;
  *next++ = pieces.data(), *next++ = units.data(), *next++ = slot.data();
  launch(k31_entry, args, s.tasks);

  const int first = ranked ? s.coordinate / s.size * s.size * s.share : 0;
  for (int rank = 0; rank < s.size; ++rank) {
    int32_t count = 0, found = -1;
    for (int row : alive) {
      bool goes = false;
      for (int i = 0; i < s.top_k; ++i)
        goes |= ((int)ids.at(row, i) - first) >= rank * s.share && ((int)ids.at(row, i) - first) < (rank + 1) * s.share;
      EXPECT_EQ(slot.at(row, rank), goes ? rank * rows + count : -1) << "row " << row << " rank " << rank;
      if (!goes)
        continue;
      EXPECT_EQ(memcmp(form.ids(pieces.data(), rank, count), ids.as<int32_t>() + row * s.top_k, s.top_k * 4), 0);
      EXPECT_EQ(memcmp(form.weights(pieces.data(), rank, count), weights.as<float>() + row * s.top_k, s.top_k * 4), 0);
      EXPECT_EQ(memcmp(form.values(pieces.data(), rank, count), x.as<char>() + row * x.ld() * element_bytes(s.type),
                       cols * element_bytes(s.type)),
                0);
      ++count;
    }
    memcpy(&found, form.count(pieces.data(), rank), 4);
    EXPECT_EQ(found, count) << "rank " << rank;
    EXPECT_EQ(units.at(0, rank), 1 + count * form.row_bytes() / 16);
    if (count < rows) { // what follows the rows was never written
      const auto *after = (const uint8_t *)form.ids(pieces.data(), rank, count);
      for (int64_t b = 0; b < (rows - count) * form.row_bytes(); ++b)
        ASSERT_EQ(after[b], Tensor::kPoisonByte);
    }
  }
}

TEST(Pack, ToTheRanksOfTheExperts) {
  for (DType type : {DType::f32, DType::bf16})
    for (uint32_t tasks : {1u, 3u})
      check({4, 3, 3, {5}, 5, -1, type, tasks}, [] { return uniform_int(0, 10); }); // the last rank lacks an expert
}
TEST(Pack, AllToOneRank) {
  check({3, 2, 2, {5}}, [] { return uniform_int(2, 3); });
}
TEST(Pack, NoRow) {
  check({3, 2, 2, {0}}, [] { return 0; });
}
TEST(Pack, RowsOfSeveralRanks) {
  check({2, 2, 2, {3, 0, 5}}, [] { return uniform_int(0, 5); });
}
// Ranks 4 and 5 of six share a host: experts below 8 live on others.
TEST(Pack, RanksOfAHost) {
  for (int coordinate : {0, 3, 4, 5})
    check({2, 2, 3, {4, 5}, 5, coordinate}, [] { return uniform_int(0, 11); });
}

} // namespace
