// States of sequences: saved and restored whole, forked, rolled back and kept for others, always token for token what a run from
// the beginning gives.
#include "runtime/engine/state_image.h"
#include "test/runtime/engine_small.h"
#include <numeric>

namespace k31::engine {
namespace {

using namespace test;
using Image = std::shared_ptr<const std::vector<std::byte>>;

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Runs a held sequence to the end of the tokens.
SequenceId hold(Engine &engine, const Ids &tokens) {
  const auto id = engine.add({.tokens = tokens, .hold = true});
  EXPECT_TRUE(id) << id.error().message;
  EXPECT_TRUE(engine.finish());
  return *id;
}

Image saved(Engine &engine, SequenceId id) {
  auto image = engine.save(id);
  EXPECT_TRUE(image) << image.error().message;
  return std::make_shared<const std::vector<std::byte>>(std::move(*image));
}

Ids joined(Ids a, const Ids &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// At every boundary, in another engine with other slots and blocks, poisoned: the restored state is the recomputed one, and so
// is the text that follows.
TEST(EngineState, RestoresAtEveryBoundary) {
  std::mt19937 random(5);
  const Ids tokens = random_ids(random, 23);
  for (uint32_t boundary = 1; boundary < tokens.size(); ++boundary) {
    FakeModel first(facts()), second(facts(30, 4));
    Engine source(first, {.poison = true}), target(second, {.poison = true});
    const Ids head(tokens.begin(), tokens.begin() + boundary);
    const Image image = saved(source, hold(source, head));
    hold(target, random_ids(random, 9)); // takes slot 0 and the first blocks

    const auto held = *target.add({.tokens = head, .state = image, .hold = true});
    EXPECT_FALSE(target.save(held)) << "nothing is restored before a step";
    ASSERT_TRUE(target.extend(held, std::span(tokens).subspan(boundary, 1)));
    Request request{.tokens = tokens, .max_tokens = 8, .state = image};
    const auto drawing = *target.add(request);
    const int prefilled = second.runs;
    ASSERT_TRUE(target.finish());
    EXPECT_GT(second.runs, prefilled);
    EXPECT_EQ(target.take(drawing)->tokens, expected(request, facts()).tokens) << boundary;
    const Sequence &s = *target.find(held);
    EXPECT_TRUE(second.holds(std::span(tokens).first(boundary + 1), s.table, s.slot)) << boundary;
    for (const auto &[start, length] : second.segments_seen)
      EXPECT_TRUE(start >= int32_t(boundary) || start + length <= 9) << "the restored tokens ran again";
  }
}

// A caller that drops its own bytes, in tests of refusals.
std::string refusal(Engine &engine, std::vector<std::byte> image, const Ids &tokens) {
  auto id =
      engine.add({.tokens = tokens, .max_tokens = 1, .state = std::make_shared<const std::vector<std::byte>>(std::move(image))});
  if (id)
    return "(accepted)";
  EXPECT_EQ(id.error().message.find('\n'), std::string::npos);
  EXPECT_HAS(id.error().message, "run the tokens again");
  return id.error().message;
}

TEST(EngineState, RefusesWhatIsNotThisState) {
  const Ids tokens = {5, 6, 7, 8, 9, 10}, head = {5, 6, 7, 8, 9};
  FakeModel model(facts());
  Engine engine(model);
  const std::vector<std::byte> good = *saved(engine, hold(engine, head));
  ASSERT_EQ(refusal(engine, good, tokens), "(accepted)");

  // Another plan, another layout, other tokens, another boundary.
  FakeModel other_plan(facts(), "other");
  Engine other(other_plan);
  EXPECT_HAS(refusal(other, good, tokens), "saved by plan 'fake', this plan is 'other'");
  ModelFacts wide = facts();
  wide.block_tokens = 8, wide.table_blocks = 8;
  FakeModel other_layout(wide);
  Engine laid_out(other_layout);
  EXPECT_HAS(refusal(laid_out, good, tokens), "laid out in another way");
  EXPECT_HAS(refusal(engine, good, {5, 6, 7, 8, 4, 10}), "of other tokens than the first 5");
  EXPECT_HAS(refusal(engine, good, {5, 6, 7, 8}), "it is of 5 positions, the sequence has 4 tokens");
  auto nothing_to_run = engine.add({.tokens = head, .max_tokens = 1, .state = std::make_shared<std::vector<std::byte>>(good)});
  ASSERT_FALSE(nothing_to_run);
  EXPECT_HAS(nothing_to_run.error().message, "give at least one more");

  // Cut at every length, and every byte changed: also those of the position and the lengths.
  for (size_t length = 0; length < good.size(); ++length)
    ASSERT_NE(refusal(engine, {good.begin(), good.begin() + int64_t(length)}, tokens), "(accepted)") << length;
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> damaged = good;
    damaged[at] ^= std::byte(1 << at % 8);
    ASSERT_NE(refusal(engine, damaged, tokens), "(accepted)") << "byte " << at;
  }
  std::vector<std::byte> longer = good;
  longer.push_back({});
  EXPECT_HAS(refusal(engine, longer, tokens), "cut short or damaged");
  EXPECT_HAS(refusal(engine, std::vector<std::byte>(200), tokens), "do not start with K31STATE");
}

// A state of a part of the caches never counts as one.
TEST(EngineState, RefusesAPart) {
  FakeModel model(facts());
  const BlockTable table = {3, 1};
  StateMemory &memory = model.state();
  ASSERT_TRUE(memory.write({table, 2, 6}, std::vector<std::byte>(memory.bytes_of(6))));
  const std::vector<std::byte> before = model.memory.arenas[0];
  auto refused = memory.write({table, 2, 6}, std::vector<std::byte>(memory.bytes_of(6) - 12, std::byte{1}));
  ASSERT_FALSE(refused);
  EXPECT_HAS(refused.error().message, "not whole");
  EXPECT_EQ(model.memory.arenas[0], before);
  EXPECT_FALSE(memory.read({table, -1, 6})); // without its slot
  EXPECT_FALSE(memory.read({table, 2, 9}));  // without its last block
  EXPECT_EQ(memory.bytes_of(6), 2u * 2 * 16 + 16 + 12);
}

// When the device fails in the middle of a restore, the sequence fails and no other one sees what was written.
TEST(EngineState, AFailedRestoreLeavesNothing) {
  const Ids head = {5, 6, 7, 8, 9};
  FakeModel model(facts());
  Engine engine(model);
  const Image image = saved(engine, hold(engine, head));
  model.memory.fail_after = 2;
  const auto id = *engine.add({.tokens = joined(head, {1}), .max_tokens = 4, .state = image});
  ASSERT_TRUE(engine.finish());
  const Output out = *engine.take(id);
  EXPECT_EQ(out.finish, Finish::failed);
  EXPECT_HAS(out.error->message, "the fake memory is gone");
  EXPECT_TRUE(out.tokens.empty());
  EXPECT_EQ(engine.slots().available(), engine.slots().total() - 1); // the held one
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total() - 2);
}

// Children begin in the middle of blocks, at their ends and at once; each goes its own way, the parent too.
TEST(EngineState, ForksGoTheirOwnWay) {
  std::mt19937 random(6);
  for (const size_t length : {1, 3, 4, 5, 8, 11}) {
    FakeModel model(facts());
    Engine engine(model, {.poison = true});
    const Ids head = random_ids(random, length);
    const SequenceId parent = hold(engine, head);
    const int32_t slot = engine.find(parent)->slot;
    std::map<SequenceId, Request> children;
    for (int i = 0; i < 4; ++i) {
      Request child{.tokens = random_ids(random, 1 + i), .max_tokens = 6, .sampling = {1, 1, uint64_t(i)}};
      const auto id = engine.fork(parent, child);
      ASSERT_TRUE(id) << id.error().message;
      EXPECT_EQ(engine.find(*id)->slot, slot) << "a fork is an index choice";
      EXPECT_EQ(engine.find(*id)->table, engine.find(parent)->table);
      child.tokens = joined(head, child.tokens);
      children.emplace(*id, child);
    }
    const Ids more = random_ids(random, 5);
    ASSERT_TRUE(engine.extend(parent, more));
    ASSERT_TRUE(engine.finish());
    for (const auto &[id, child] : children)
      EXPECT_EQ(engine.take(id)->tokens, expected(child, facts()).tokens);
    EXPECT_TRUE(model.holds(joined(head, more), engine.find(parent)->table, engine.find(parent)->slot));
    for (const auto &[start, run] : model.segments_seen)
      EXPECT_TRUE(start == 0 || start >= int32_t(length)) << "a fork ran the parent's tokens";
    EXPECT_EQ(engine.counters().copied_blocks > 0, length % 4 != 0);
    engine.cancel(parent);
    expect_empty(engine);
  }
}

TEST(EngineState, ForksOfADrawingSequence) {
  FakeModel model(facts());
  Engine engine(model);
  Request request{.tokens = {1, 2, 3}, .max_tokens = 12};
  const auto parent = *engine.add(request);
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(engine.step());
  Request child{.tokens = {}, .max_tokens = 5, .sampling = {1, 0.5f, 9}};
  const auto id = *engine.fork(parent, child);
  ASSERT_TRUE(engine.finish());
  const Ids all = expected(request, facts()).tokens;
  EXPECT_EQ(engine.take(parent)->tokens, all);
  child.tokens = joined({1, 2, 3}, {all.begin(), all.begin() + 4});
  EXPECT_EQ(engine.take(id)->tokens, expected(child, facts()).tokens);
  expect_empty(engine);
}

// Speculation: tokens are tried, a part of them is accepted, the rest is taken back. After each of 1000 cycles the state is that
// of the accepted tokens alone, and the logits of the next position too.
TEST(EngineState, AThousandRollbacksEqualAReplay) {
  std::mt19937 random(7);
  ModelFacts model_facts = facts();
  model_facts.max_context = 400, model_facts.table_blocks = 100, model_facts.blocks = 120;
  FakeModel model(model_facts);
  Engine engine(model, {.poison = true});
  uint64_t given = 0;
  int32_t best = -1;
  Ids accepted = random_ids(random, 6);
  const auto start = [&] {
    return *engine.add({.tokens = accepted, .hold = true, .on_logits = [&](uint64_t position, std::span<const float> row) {
                          given = position;
                          best = int32_t(std::max_element(row.begin(), row.end()) - row.begin());
                        }});
  };
  SequenceId id = start();
  ASSERT_TRUE(engine.finish());
  int all = 0, none = 0;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    if (accepted.size() > 380) { // the context is full: a new text
      engine.cancel(id);
      accepted = random_ids(random, 6);
      id = start();
      ASSERT_TRUE(engine.finish());
    }
    const Ids tried = random_ids(random, 1 + random() % 7);
    ASSERT_TRUE(engine.mark(id));
    ASSERT_TRUE(engine.extend(id, tried));
    ASSERT_TRUE(engine.finish());
    const size_t taken = random() % (tried.size() + 1);
    all += taken == tried.size(), none += taken == 0;
    accepted.insert(accepted.end(), tried.begin(), tried.begin() + int64_t(taken));
    ASSERT_TRUE(engine.rollback(id, uint32_t(accepted.size())));
    const int32_t next = random() % 97;
    accepted.push_back(next);
    ASSERT_TRUE(engine.extend(id, std::span(&next, 1))); // as a verifier draws one more
    ASSERT_TRUE(engine.finish());

    const Sequence &s = *engine.find(id);
    ASSERT_EQ(s.done, accepted.size());
    ASSERT_TRUE(model.holds(accepted, s.table, s.slot)) << "cycle " << cycle;
    ASSERT_EQ(given + 1, accepted.size());
    ASSERT_EQ(best, next_id(accepted, 97));
    ASSERT_GE(engine.slots().available(), engine.slots().total() - 2);
  }
  EXPECT_GT(all, 50);
  EXPECT_GT(none, 50);
  engine.cancel(id);
  expect_empty(engine);
}

TEST(EngineState, RollbackWithoutAMarkRunsAgain) {
  FakeModel model(facts());
  Engine engine(model);
  const Ids tokens = {1, 2, 3, 4, 5, 6, 7};
  const SequenceId id = hold(engine, tokens);
  ASSERT_TRUE(engine.rollback(id, 5));
  ASSERT_TRUE(engine.finish());
  EXPECT_TRUE(model.holds(std::span(tokens).first(5), engine.find(id)->table, engine.find(id)->slot));
  EXPECT_FALSE(engine.rollback(id, 6));
  EXPECT_FALSE(engine.rollback(id, 0));
  EXPECT_FALSE(engine.extend(id, Ids(60, 1)));
  EXPECT_FALSE(engine.extend(id, Ids{97}));
  const auto drawing = *engine.add({.tokens = {1}, .max_tokens = 3});
  EXPECT_FALSE(engine.rollback(drawing, 1));
  EXPECT_FALSE(engine.mark(drawing + 1));
  EXPECT_FALSE(engine.add({.tokens = {1}, .max_tokens = 3, .hold = true}));
}

// A later sequence begins with a kept state only where all parts of it were kept: at the boundary that was asked for, and at the
// end of a finished text. The warm run gives the cold one's tokens.
TEST(EngineState, ReusesAKeptPrefix) {
  std::mt19937 random(8);
  for (const uint32_t system : {3, 4, 8, 10}) {
    FakeModel model(facts());
    Engine engine(model, {.kept_states = 3, .poison = true});
    const Ids head = random_ids(random, system);
    const auto ask = [&](const Ids &question) {
      model.segments_seen.clear();
      Request request{.tokens = joined(head, question), .max_tokens = 5, .keep = {system}};
      const Output out = run_one(engine, request);
      EXPECT_EQ(out.tokens, expected(request, facts()).tokens);
      return model.segments_seen.at(0).first; // where it began
    };
    EXPECT_EQ(ask({1, 2, 3}), 0);
    EXPECT_EQ(ask({4, 5, 6, 7}), int32_t(system));
    EXPECT_EQ(ask({1, 2, 9}), int32_t(system)); // two tokens more are common, but no state was kept there
    EXPECT_EQ(engine.counters().reuses, 2u);
    EXPECT_EQ(engine.counters().reused_positions, 2u * system);

    // The next turn of a conversation: the kept state of the whole first turn, whose last token had not run.
    Request first{.tokens = joined(head, {1, 2, 3}), .max_tokens = 5};
    Ids second = joined(first.tokens, expected(first, facts()).tokens);
    second.push_back(50);
    model.segments_seen.clear();
    EXPECT_EQ(run_one(engine, {.tokens = second, .max_tokens = 4}).tokens,
              expected({.tokens = second, .max_tokens = 4}, facts()).tokens);
    engine.forget();
    expect_empty(engine);
  }
}

TEST(EngineState, ConversationsGoOnFromTheirEnd) {
  FakeModel model(facts());
  Engine engine(model, {.kept_states = 2, .poison = true});
  Ids text = {1, 2, 3};
  int32_t begins = 0;
  for (int turn = 0; turn < 6; ++turn) {
    model.segments_seen.clear();
    Request request{.tokens = text, .max_tokens = 4};
    const Output out = run_one(engine, request);
    EXPECT_EQ(out.tokens, expected(request, facts()).tokens);
    EXPECT_EQ(model.segments_seen.at(0).first, begins) << "turn " << turn;
    text = joined(joined(text, out.tokens), {int32_t(turn)});
    begins = int32_t(text.size()) - 2; // the last drawn token did not run
  }
  EXPECT_EQ(engine.counters().reuses, 5u);
}

// Kept states make way for sequences, oldest first.
TEST(EngineState, KeptStatesMakeWay) {
  FakeModel model(facts(15, 2));
  Engine engine(model, {.kept_states = 8, .poison = true});
  for (int32_t i = 0; i < 5; ++i)
    run_one(engine, {.tokens = {i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, .max_tokens = 4});
  EXPECT_FALSE(engine.kept_states().empty());
  EXPECT_LE(engine.kept_states().all().size(), 2u); // there are two slots
  Request large{.tokens = Ids(50, 3), .max_tokens = 10};
  EXPECT_EQ(run_one(engine, large).tokens, expected(large, facts()).tokens);
  EXPECT_EQ(engine.counters().preemptions, 0u);
}

// Held sequences that rest give their memory up before anybody is preempted, and run again when they are extended.
TEST(EngineState, RestingSequencesMakeWay) {
  FakeModel model(facts(15, 3));
  Engine engine(model, {.poison = true});
  const Ids head = {9, 8, 7, 6, 5};
  const SequenceId rests = hold(engine, head);
  ASSERT_TRUE(engine.mark(rests));
  Request a{.tokens = Ids(20, 3), .max_tokens = 10}, b{.tokens = Ids(22, 4), .max_tokens = 10};
  const auto first = *engine.add(a), second = *engine.add(b);
  ASSERT_TRUE(engine.finish());
  EXPECT_EQ(engine.take(first)->tokens, expected(a, facts()).tokens);
  EXPECT_EQ(engine.take(second)->tokens, expected(b, facts()).tokens);
  ASSERT_TRUE(engine.extend(rests, Ids{4}));
  ASSERT_TRUE(engine.finish());
  EXPECT_TRUE(model.holds(joined(head, {4}), engine.find(rests)->table, engine.find(rests)->slot));
}

} // namespace
} // namespace k31::engine
