// The blocks of next_pieces copy what place_rows copies, for layouts of every kind and from any row on.
#include "runtime/weights/placement.h"
#include "test/runtime/plan_builder.h"
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace k31::test {
namespace {

// Applies the blocks as a 2D copy would; returns how many there were.
int apply(const plan::Layout &layout, uint64_t row, uint64_t count, const std::byte *source, std::vector<std::byte> &member) {
  int blocks = 0;
  while (count > 0) {
    weights::Pieces p;
    const uint64_t rows = weights::next_pieces(layout, row, count, &p);
    EXPECT_GE(rows, 1u);
    EXPECT_LE(rows, count);
    for (uint64_t i = 0; i < p.height; ++i) {
      EXPECT_LE(p.dest + i * p.dest_pitch + p.width, member.size());
      memcpy(member.data() + p.dest + i * p.dest_pitch, source + p.source + i * p.source_pitch, p.width);
    }
    source += rows * layout.row_bytes(), row += rows, count -= rows;
    ++blocks;
  }
  return blocks;
}

struct Built {
  flatbuffers::FlatBufferBuilder builder;
  const plan::Layout *layout;
  explicit Built(const plan::LayoutT &l) {
    builder.Finish(plan::CreateLayout(builder, &l));
    layout = flatbuffers::GetRoot<plan::Layout>(builder.GetBufferPointer());
  }
};

} // namespace

TEST(WeightPieces, CopyAsRowsArePlaced) {
  std::mt19937 random(3);
  const auto draw = [&](uint64_t low, uint64_t high) { return low + random() % (high - low + 1); };
  for (int trial = 0; trial < 500; ++trial) {
    plan::LayoutT l;
    l.row_count = draw(1, 40), l.row_bytes = draw(1, 24);
    const bool whole = trial % 2 == 0;
    l.byte_begin = whole ? 0 : draw(0, l.row_bytes - 1), l.byte_count = whole ? l.row_bytes : draw(1, l.row_bytes - l.byte_begin);
    l.dest_row_bytes = whole ? l.row_bytes : l.byte_count + draw(0, 5);
    l.group = trial % 3 == 0 ? l.row_count : draw(1, l.row_count);
    l.group_begin = trial % 3 == 0 ? 0 : draw(0, 4);
    l.group_stride = trial % 3 == 0 ? l.group : l.group + l.group_begin + draw(0, 3);
    const Built built(l);
    std::vector<std::byte> source(l.row_count * l.row_bytes);
    for (std::byte &b : source)
      b = static_cast<std::byte>(random());
    uint64_t extent = 0;
    ASSERT_TRUE(weights::dest_extent(*built.layout, &extent));
    const uint64_t row = draw(0, l.row_count - 1), count = draw(1, l.row_count - row);
    std::vector<std::byte> expected(extent, std::byte{7}), got = expected;
    const std::byte *from = source.data() + row * l.row_bytes;
    weights::place_rows(*built.layout, row, count, from, expected.data());
    apply(*built.layout, row, count, from, got);
    ASSERT_EQ(got, expected) << "trial " << trial;
  }
}

// Gate and up rows interleaved in groups of 16: one 2D copy, not one a group.
TEST(WeightPieces, InterleavedGroupsAreOneBlock) {
  plan::LayoutT l;
  l.row_count = 256, l.row_bytes = l.byte_count = l.dest_row_bytes = 12, l.group = 16, l.group_stride = 32, l.group_begin = 16;
  const Built built(l);
  std::vector<std::byte> source(256 * 12), member(512 * 12);
  EXPECT_EQ(apply(*built.layout, 0, 256, source.data(), member), 1);
  EXPECT_EQ(apply(*built.layout, 8, 248, source.data() + 8 * 12, member), 2); // the rest of a group, then whole ones
}

} // namespace k31::test
