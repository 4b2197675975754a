// attn.batch_rows: every row of a rank has the segment and position that it has in the whole batch.
#include "codegen/kernels/attn/batch_rows.h"
#include "test/kernels/common/batch.h"

using namespace k31::test;
using namespace k31::kernels;
using batch_rows::Args, batch_rows::Config;

extern "C" {
Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

void check(const std::vector<BatchData::Run> &runs, int ranks, int share) {
  int tokens = 0;
  for (const BatchData::Run &run : runs)
    tokens += run.length;
  ASSERT_LE(tokens, ranks * share);
  BatchData batch(runs, ranks * share - tokens);
  k31_config = {share};
  int seen = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(::testing::Message() << "rank " << rank << " of " << ranks << ", " << share << " rows each");
    constexpr int32_t kPoison = 0x7badbeef;
    std::vector<int32_t> counts(4, kPoison), rows(share + 1, kPoison);
    std::vector<Segment> segments(batch.segments.size(), Segment{kPoison, kPoison, kPoison, kPoison, kPoison, kPoison});
    launch(k31_entry, Args{batch.view(), &rank, counts.data(), segments.data(), rows.data()}, 3);
    const int live = std::clamp(tokens - rank * share, 0, share);
    ASSERT_EQ(counts, (std::vector<int32_t>{live, (int32_t)runs.size(), 0, 0}));
    ASSERT_EQ(rows[share], kPoison);
    int of_segments = 0;
    for (size_t s = 0; s < runs.size(); ++s) {
      of_segments += segments[s].length;
      ASSERT_EQ(segments[s].slot_in, batch.segments[s].slot_in);
      ASSERT_EQ(segments[s].slot_out, batch.segments[s].slot_out);
    }
    ASSERT_EQ(of_segments, live);
    ASSERT_EQ(segments.back().row_begin, kPoison) << "a dead segment was written";
    for (int row = 0; row < share; ++row) {
      if (row >= live) {
        ASSERT_EQ(rows[row], -1);
        continue;
      }
      const int whole = rank * share + row;
      ASSERT_EQ(rows[row], batch.row_segment[whole]);
      const Segment &s = segments[rows[row]];
      ASSERT_TRUE(row >= s.row_begin && row < s.row_begin + s.length);
      ASSERT_EQ(s.start + row - s.row_begin, batch.position(whole));
      ++seen;
    }
  }
  EXPECT_EQ(seen, tokens);
}

TEST(BatchRows, SegmentsAcrossRanks) {
  check({{0, 5}, {255, 1}, {254, 4}, {700, 1}, {0, 3}}, 4, 4);
  check({{10, 16}}, 4, 4);
}
TEST(BatchRows, RanksWithoutRows) {
  check({{300, 2}}, 4, 8);
  check({}, 2, 4);
}
TEST(BatchRows, MoreSegmentsThanRows) { check({{0, 1}, {9, 1}, {3, 1}, {5, 1}, {1, 1}, {2, 1}}, 3, 2); }

} // namespace
