// Block manager and state manager against a shadow map of owners; the scheduler's choices.
#include "runtime/engine/block_manager.h"
#include "runtime/engine/scheduler.h"
#include "runtime/engine/state_manager.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace k31::engine {
namespace {

TEST(BlockManager, RandomOwners) {
  std::mt19937 random(3);
  BlockManager manager(37, 256);
  std::vector<BlockTable> tables(9);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    BlockTable &table = tables[random() % tables.size()];
    if (random() % 3 == 0) {
      manager.release(table);
    } else {
      const BlockTable before = table;
      const uint32_t want = random() % 12 + 1;
      const bool fits = want <= before.size() || want - before.size() <= manager.available();
      auto grown = manager.grow(table, uint64_t(want) * 256 - random() % 256);
      EXPECT_EQ(bool(grown), fits);
      EXPECT_EQ(table.size(), fits ? std::max<size_t>(want, before.size()) : before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), table.begin())); // blocks never move
      refused += !grown;
    }
    std::map<int32_t, int> owners;
    for (const BlockTable &t : tables)
      for (const int32_t block : t) {
        EXPECT_TRUE(block >= 0 && block < 37);
        EXPECT_EQ(++owners[block], 1) << "two owners of block " << block;
      }
    EXPECT_EQ(owners.size() + manager.available(), 37u);
  }
  EXPECT_GT(refused, 100);
}

TEST(BlockManager, RefusesWithNumbers) {
  BlockManager manager(3, 4);
  BlockTable a, b;
  ASSERT_TRUE(manager.grow(a, 5));
  auto refused = manager.grow(b, 9);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_NE(refused.error().message.find("9 positions needs 3 more cache blocks of 4 positions, and 1 of 3 are free"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(manager.needed(0), 0u);
  EXPECT_EQ(manager.needed(4), 1u);
  EXPECT_EQ(manager.needed(5), 2u);
}

TEST(StateManager, TakesAndGives) {
  StateManager manager(3);
  EXPECT_EQ(*manager.take(1), 1);
  EXPECT_EQ(*manager.take(), 0);
  EXPECT_FALSE(manager.take(1));
  EXPECT_FALSE(manager.take(3));
  EXPECT_EQ(*manager.take(), 2);
  EXPECT_FALSE(manager.take());
  manager.give(1);
  EXPECT_EQ(manager.available(), 1u);
  EXPECT_EQ(*manager.take(), 1);
}

ModelFacts facts() {
  ModelFacts model;
  model.vocab = 10, model.max_context = 64, model.block_tokens = 4, model.table_blocks = 16, model.blocks = 100, model.slots = 8;
  model.entries = {{"prefill_32", false, 32, 8, 8, false, false},
                   {"prefill_8", false, 8, 4, 4, false, false},
                   {"decode_8", true, 8, 8, 8, false, false},
                   {"decode_2", true, 2, 2, 2, false, false}};
  return model;
}

Candidate decode(uint32_t index, uint64_t last_step = 1) { return {index, 7, 1, 2, false, true, last_step}; }
Candidate prompt(uint32_t index, uint32_t pending) { return {index, 0, pending, 0, false, true, 0}; }

struct Chosen {
  std::string entry;
  std::vector<std::pair<uint32_t, uint32_t>> segments; // index, length
  uint32_t logit_rows = 0;
};

Chosen choose(const std::vector<Candidate> &candidates, uint32_t blocks = 100, uint32_t chunk = 0,
              const ModelFacts &model = facts()) {
  Scheduler scheduler(model, chunk);
  Work work;
  if (!scheduler.choose(candidates, blocks, work))
    return {};
  Chosen chosen{model.entries[work.entry].name, {}, work.logit_rows};
  for (const ScheduledSegment &s : work.segments)
    chosen.segments.emplace_back(s.index, s.length);
  return chosen;
}

using Segments = std::vector<std::pair<uint32_t, uint32_t>>;

TEST(Scheduler, SmallestEntryThatFits) {
  EXPECT_EQ(choose({decode(0)}).entry, "decode_2");
  EXPECT_EQ(choose({decode(0), decode(1), decode(2)}).entry, "decode_8");
  EXPECT_EQ(choose({prompt(0, 8)}).entry, "prefill_8");
  EXPECT_EQ(choose({prompt(0, 9)}).entry, "prefill_32");
  EXPECT_EQ(choose({prompt(0, 5), prompt(1, 5)}).entry, "prefill_32");
}

TEST(Scheduler, LongPromptIsCut) {
  const Chosen chosen = choose({prompt(0, 50)});
  EXPECT_EQ(chosen.entry, "prefill_32");
  EXPECT_EQ(chosen.segments, (Segments{{0, 32}}));
  EXPECT_EQ(chosen.logit_rows, 0u); // its last row is not in this step
  EXPECT_EQ(choose({prompt(0, 50)}, 100, 5).segments, (Segments{{0, 5}}));
}

TEST(Scheduler, DecodesShareThePrefill) {
  const Chosen chosen = choose({prompt(0, 40), decode(1), decode(2)});
  EXPECT_EQ(chosen.entry, "prefill_32");
  EXPECT_EQ(chosen.segments, (Segments{{1, 1}, {2, 1}, {0, 30}}));
  EXPECT_EQ(chosen.logit_rows, 2u);
}

TEST(Scheduler, LongestWaitFirst) {
  ModelFacts model = facts();
  model.entries = {model.entries[3]};
  EXPECT_EQ(choose({decode(0, 5), decode(1, 3), decode(2, 4)}, 100, 0, model).segments, (Segments{{1, 1}, {2, 1}}));
}

TEST(Scheduler, PromptIsNotStarvedByDecodes) {
  ModelFacts model = facts();
  model.entries = {{"prefill_4", false, 4, 2, 2, false, false}};
  EXPECT_EQ(choose({decode(0), decode(1), prompt(2, 9)}, 100, 0, model).segments, (Segments{{0, 1}, {2, 3}}));
}

TEST(Scheduler, BlocksLimitTheChunk) {
  EXPECT_EQ(choose({prompt(0, 30)}, 2).segments, (Segments{{0, 8}}));
  EXPECT_EQ(choose({prompt(0, 30)}, 0).segments, (Segments{}));
  EXPECT_EQ(choose({decode(0)}, 0).segments, (Segments{{0, 1}})); // position 7 is in the block it owns
}

TEST(Scheduler, LogitRowsLimitTheChunk) {
  Candidate all = prompt(0, 30);
  all.all_logits = true;
  const Chosen chosen = choose({all});
  EXPECT_EQ(chosen.segments, (Segments{{0, 8}}));
  EXPECT_EQ(chosen.logit_rows, 8u);
}

} // namespace
} // namespace k31::engine
