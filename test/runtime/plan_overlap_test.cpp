// Two weights on the same bytes are refused at Load, interleaved ones are not; against a map of every byte.
#include "runtime/plan/plan_file.h"
#include "test/runtime/plan_builder.h"
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace k31::test {
namespace {

constexpr uint64_t kArena = 1 << 16;

plan::PlanT empty_plan() {
  plan::PlanT plan = sample_plan();
  plan.images[0]->code = {1};
  plan.entries.clear();
  plan.arenas[kWeights]->bytes = kArena;
  auto file = std::make_unique<plan::CheckpointFileT>();
  file->name = "model.safetensors", file->bytes = uint64_t(1) << 40;
  plan.files.push_back(std::move(file));
  return plan;
}

plan::WeightStackT &add(plan::PlanT &plan, const std::string &name, uint32_t members, uint64_t rows, uint64_t row_bytes,
                        uint64_t dest, uint64_t stride) {
  auto s = std::make_unique<plan::WeightStackT>();
  s->pattern = name + ".{}", s->dtype = "U8", s->shape = {rows, row_bytes}, s->arena = kWeights, s->dest = dest,
  s->stride = stride;
  for (uint32_t m = 0; m < members; ++m)
    s->members.push_back(m), s->files.push_back(0), s->offsets.push_back(0);
  s->layout = plain_layout(rows, row_bytes);
  plan.weights.push_back(std::move(s));
  return *plan.weights.back();
}

std::string refusal(const plan::PlanT &plan) {
  const std::string bytes = file(plan);
  std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  memcpy(copy.get(), bytes.data(), bytes.size());
  auto result = verify_plan({copy.get(), bytes.size()});
  return result ? "(accepted)" : result.error().message;
}

// The definition of Layout, byte by byte: true when a byte is written twice.
bool written_twice(const plan::PlanT &plan) {
  std::vector<bool> written(kArena);
  for (const auto &s : plan.weights)
    for (size_t m = 0; m < s->files.size(); ++m)
      for (uint64_t r = 0; r < s->layout->row_count; ++r) {
        const plan::LayoutT &l = *s->layout;
        const uint64_t row = (r / l.group) * l.group_stride + l.group_begin + r % l.group;
        for (uint64_t b = 0; b < l.byte_count; ++b) {
          const uint64_t at = s->dest + m * s->stride + row * l.dest_row_bytes + b;
          if (written.at(at))
            return true;
          written[at] = true;
        }
      }
  return false;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(PlanOverlap, StacksSideBySide) {
  plan::PlanT plan = empty_plan();
  add(plan, "a", 4, 8, 16, 0, 128), add(plan, "b", 4, 8, 16, 512, 128);
  EXPECT_EQ(refusal(plan), "(accepted)");
  plan.weights[1]->dest = 511;
  EXPECT_HAS(refusal(plan), "the weights 'a.3' and 'b.0' are placed on the same bytes: 384 to 512 and 511 to 639");
  plan.weights.pop_back();
  plan.weights[0]->stride = 127;
  EXPECT_HAS(refusal(plan), "the weights 'a.0' and 'a.1' are placed on the same bytes");
  plan.weights[0]->stride = 0;
  EXPECT_HAS(refusal(plan), "the weights 'a.0' and 'a.1' are placed on the same bytes");
}

TEST(PlanOverlap, OtherArenasDoNotCount) {
  plan::PlanT plan = empty_plan();
  add(plan, "a", 1, 8, 16, 0, 0), add(plan, "b", 1, 8, 16, 0, 0);
  EXPECT_HAS(refusal(plan), "on the same bytes");
  auto arena = std::make_unique<plan::ArenaT>();
  arena->name = "more", arena->kind = plan::ArenaKind::weights, arena->bytes = kArena;
  plan.arenas.push_back(std::move(arena));
  plan.weights[1]->arena = static_cast<uint32_t>(plan.arenas.size() - 1);
  EXPECT_EQ(refusal(plan), "(accepted)");
}

// Gate and up: groups of 16 rows in turn, one matrix an expert.
TEST(PlanOverlap, InterleavedGroups) {
  plan::PlanT plan = empty_plan();
  for (uint64_t part : {0, 1}) {
    plan::LayoutT &l = *add(plan, part ? "up" : "gate", 3, 64, 32, 0, 128 * 32).layout;
    l.group = 16, l.group_stride = 32, l.group_begin = 16 * part;
  }
  EXPECT_EQ(refusal(plan), "(accepted)");
  plan.weights[1]->layout->group_begin = 15;
  EXPECT_HAS(refusal(plan), "the weights 'gate.0' and 'up.0' are placed on the same bytes");
  plan.weights[1]->layout->group_begin = 16;
  plan.weights[1]->layout->group = 17, plan.weights[1]->layout->group_stride = 33; // another rhythm meets the first one
  EXPECT_HAS(refusal(plan), "on the same bytes");
}

TEST(PlanOverlap, ColumnsOfOneMatrix) {
  plan::PlanT plan = empty_plan();
  add(plan, "a", 1, 10, 24, 0, 0).layout->dest_row_bytes = 40;
  add(plan, "b", 1, 10, 16, 24, 0).layout->dest_row_bytes = 40;
  EXPECT_EQ(refusal(plan), "(accepted)");
  plan.weights[1]->dest = 23;
  EXPECT_HAS(refusal(plan), "on the same bytes");
  plan.weights[1]->dest = 25; // wraps into the next row of the other
  EXPECT_HAS(refusal(plan), "on the same bytes");
}

TEST(PlanOverlap, AgreesWithAMapOfBytes) {
  std::mt19937 random(5);
  const auto pick = [&](uint64_t low, uint64_t high) { return low + random() % (high - low + 1); };
  int accepted = 0, refused = 0, strict = 0;
  for (int i = 0; i < 4000; ++i) {
    plan::PlanT plan = empty_plan();
    const uint64_t pitch = pick(1, 12), stride = pick(1, 8);
    for (uint64_t n = pick(1, 3); n > 0; --n) {
      const uint64_t rows = pick(1, 12), row_bytes = pick(1, 12);
      plan::LayoutT &l =
          *add(plan, "w" + std::to_string(n), static_cast<uint32_t>(pick(1, 3)), rows, row_bytes, pick(0, 300), pick(0, 400))
               .layout;
      l.dest_row_bytes = random() % 4 ? std::max(pitch, row_bytes) : row_bytes + pick(0, 5);
      l.group = pick(1, rows), l.group_stride = random() % 4 ? std::max(stride, l.group) : l.group + pick(0, 5);
      l.group_begin = pick(0, 4);
    }
    const bool twice = written_twice(plan), ok = refusal(plan) == "(accepted)";
    ASSERT_FALSE(twice && ok) << "round " << i << ": bytes are written twice, and the plan was accepted";
    (ok ? accepted : refused)++;
    strict += !twice && !ok; // rows that cross without a common rhythm
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 300);
  EXPECT_LT(strict, 1000) << "of " << refused;
}

TEST(PlanOverlap, ManyMembersBetweenEachOther) {
  plan::PlanT plan = empty_plan();
  add(plan, "a", 64, 10, 1, 0, 1).layout->dest_row_bytes = 200; // 64 columns of one byte
  EXPECT_EQ(refusal(plan), "(accepted)");
  plan.weights.clear();
  add(plan, "a", 66, 10, 1, 0, 1).layout->dest_row_bytes = 200;
  EXPECT_HAS(refusal(plan), "more than 64 weights lie between each other's rows at byte 64");
}

} // namespace
} // namespace k31::test
