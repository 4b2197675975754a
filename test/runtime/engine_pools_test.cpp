// Block manager and state manager against a shadow map of owners; the scheduler's choices.
#include "runtime/engine/block_manager.h"
#include "runtime/engine/scheduler.h"
#include "runtime/engine/state_manager.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace k31::engine {
namespace {

// Tables grow, share blocks, replace shared ones and are cut, against a map of owners kept beside.
TEST(BlockManager, RandomOwners) {
  std::mt19937 random(3);
  BlockManager manager(37, 4);
  std::vector<BlockTable> tables(9);
  std::map<int32_t, uint32_t> owners;
  std::vector<int32_t> freed;
  int refused = 0, replaced = 0;
  for (int round = 0; round < 20000; ++round) {
    BlockTable &table = tables[random() % tables.size()];
    const BlockTable before = table;
    freed.clear();
    switch (random() % 4) {
    case 0: {
      const uint32_t keep = random() % (table.size() + 1);
      manager.release(table, freed, keep);
      std::vector<int32_t> gone;
      for (size_t i = before.size(); i-- > keep;)
        if (!--owners[before[i]])
          gone.push_back(before[i]);
      EXPECT_EQ(freed, gone);
      EXPECT_EQ(table, BlockTable(before.begin(), before.begin() + keep));
      break;
    }
    case 1: {
      const uint32_t want = random() % 12 + 1;
      const bool fits = want <= before.size() || want - before.size() <= manager.available();
      auto grown = manager.grow(table, uint64_t(want) * 4 - random() % 4);
      EXPECT_EQ(bool(grown), fits);
      EXPECT_EQ(table.size(), fits ? std::max<size_t>(want, before.size()) : before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), table.begin())); // blocks never move
      for (size_t i = before.size(); i < table.size(); ++i)
        EXPECT_EQ(++owners[table[i]], 1u) << "block " << table[i] << " was not free";
      refused += !grown;
      break;
    }
    case 2: {
      BlockTable &other = tables[random() % tables.size()];
      if (!other.empty())
        break;
      other = manager.share(table, uint32_t(random() % (table.size() + 1)));
      EXPECT_TRUE(std::equal(other.begin(), other.end(), table.begin()));
      for (const int32_t block : other)
        ++owners[block];
      break;
    }
    default:
      if (table.empty() || !manager.available() || !manager.shared_tail(table, uint32_t(table.size() * 4 - 1)))
        break;
      EXPECT_EQ(manager.replace(table.back()), table.back());
      --owners[before.back()];
      EXPECT_EQ(++owners[table.back()], 1u);
      ++replaced;
    }
    uint32_t used = 0;
    for (int32_t block = 0; block < 37; ++block) {
      ASSERT_EQ(manager.owners_of(block), owners[block]) << "block " << block;
      used += owners[block] > 0;
    }
    ASSERT_EQ(used + manager.available(), 37u);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(replaced, 100);
}

TEST(BlockManager, ATailIsSharedInTheMiddleOfABlock) {
  BlockManager manager(5, 4);
  BlockTable a;
  ASSERT_TRUE(manager.grow(a, 6));
  EXPECT_FALSE(manager.shared_tail(a, 6));
  const BlockTable b = manager.share(a, 2);
  EXPECT_TRUE(manager.shared_tail(a, 6));
  EXPECT_TRUE(manager.shared_tail(b, 3));
  EXPECT_FALSE(manager.shared_tail(a, 4)); // the next position is in another block
  EXPECT_FALSE(manager.shared_tail(a, 8));
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
  std::vector<int32_t> freed;
  EXPECT_EQ(manager.share(1), 1);
  manager.give(1, freed);
  EXPECT_TRUE(freed.empty()); // it has an owner left
  EXPECT_EQ(manager.available(), 0u);
  manager.give(1, freed);
  manager.give(-1, freed);
  EXPECT_EQ(freed, std::vector<int32_t>{1});
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
              const ModelFacts &model = facts(), uint32_t slots = 8) {
  Scheduler scheduler(model, chunk);
  Work work;
  if (!scheduler.choose(candidates, blocks, slots, work))
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

TEST(Scheduler, CopiesAndSlotsAreCounted) {
  Candidate copies = prompt(0, 30);
  copies.done = 6, copies.held = 2, copies.copies_tail = true;
  EXPECT_EQ(choose({copies}, 3).segments, (Segments{{0, 10}})); // to position 16: two blocks, and one for the copy
  EXPECT_EQ(choose({copies}, 0).segments, (Segments{}));        // position 6 is in a block that is not its own
  Candidate takes = decode(0);
  takes.takes_slot = true;
  Candidate second = takes;
  second.index = 1;
  EXPECT_EQ(choose({takes, second}, 100, 0, facts(), 1).segments, (Segments{{0, 1}}));
  EXPECT_EQ(choose({takes, decode(2)}, 100, 0, facts(), 0).segments, (Segments{{2, 1}}));
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
