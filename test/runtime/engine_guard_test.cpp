// A value that is not finite, in logits or in any cache, ends its own sequence with its reason, and nothing of it stays.
#include "test/runtime/engine_small.h"

namespace k31::engine {
namespace {

using namespace test;

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// One of four sequences breaks; the others' tokens are those that they give alone.
struct Guard : ::testing::Test {
  FakeModel model{facts()};
  std::map<SequenceId, Request> others;
  SequenceId bad = 0;

  void start(Engine &engine) {
    for (int32_t i = 0; i < 3; ++i) {
      Request request{.tokens = {i, 5, 6, 7, 8}, .max_tokens = 14};
      others.emplace(*engine.add(request), request);
    }
    bad = *engine.add({.tokens = {30, 31, 32, 33, 34, 35}, .max_tokens = 20});
  }
  void finish(Engine &engine, const std::string &reason) {
    ASSERT_TRUE(engine.finish());
    const Output out = *engine.take(bad);
    EXPECT_EQ(out.finish, Finish::failed);
    ASSERT_TRUE(out.error);
    EXPECT_HAS(out.error->message, reason);
    EXPECT_HAS(out.error->message, "this sequence was ended, others go on");
    EXPECT_EQ(out.error->message.find('\n'), std::string::npos);
    for (const auto &[id, request] : others)
      EXPECT_EQ(engine.take(id)->tokens, expected(request, facts()).tokens);
    EXPECT_EQ(engine.counters().non_finite, 1u);
    engine.forget();
    expect_empty(engine);
  }
};

TEST_F(Guard, EachCache) {
  const std::pair<StateKind, const char *> kinds[] = {{StateKind::latent, "latent of layer 1"},
                                                      {StateKind::index, "index of layer 1"},
                                                      {StateKind::kda, "kda of layer 0"},
                                                      {StateKind::conv, "conv of layer 0"}};
  for (const auto &[kind, name] : kinds) {
    SCOPED_TRACE(name);
    FakeModel model(facts());
    others.clear();
    Engine engine(model);
    start(engine);
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(engine.step());
    const Sequence &s = *engine.find(bad);
    const BlockTable blocks = s.table;
    const int32_t slot = s.slot;
    model.spoil(kind, kind == StateKind::latent || kind == StateKind::index ? blocks[1] : slot);
    ASSERT_TRUE(engine.step());
    EXPECT_FALSE(engine.find(bad));
    // Scrubbed: zeros, before anybody else gets them.
    for (const int32_t block : blocks)
      EXPECT_TRUE(model.block_is(block, {})) << block;
    EXPECT_TRUE(model.slot_is(slot, {}));
    finish(engine, name);
  }
}

TEST_F(Guard, LogitsOfAPrompt) {
  model.broken_id = 32;
  model.breaks_state = true;
  Engine engine(model);
  start(engine);
  finish(engine, "the logits at position 5 are not finite and neither is its state (kda of layer 0)");
}

// Nothing asks for logits of these tokens: the state is looked at when the option says so.
TEST_F(Guard, AStateWithoutLogits) {
  model.broken_id = 32;
  model.breaks_state = true;
  for (const uint32_t every : {0u, 1u}) {
    Engine engine(model, {.check_state = every});
    const auto id = *engine.add({.tokens = {31, 32, 33}, .hold = true});
    ASSERT_TRUE(engine.finish());
    const auto out = engine.take(id);
    EXPECT_EQ(bool(out), every == 1);
    if (out) {
      EXPECT_HAS(out->error->message, "its state at position 3 is not finite (kda of layer 0)");
      continue;
    }
    const auto saved = engine.save(id); // it never leaves the engine
    ASSERT_FALSE(saved);
    EXPECT_HAS(saved.error().message, "not finite");
  }
}

// A state that is not finite is kept for nobody. The logits were fine, the state behind them is not.
TEST_F(Guard, AKeptStateIsFinite) {
  model.broken_id = 50;
  model.breaks_silently = true;
  Engine engine(model, {.kept_states = 4});
  const auto finished = *engine.add({.tokens = {1, 2, 50}, .max_tokens = 1});
  const auto kept = *engine.add({.tokens = {1, 50, 3, 4}, .max_tokens = 5, .keep = {2}});
  const auto fine = *engine.add({.tokens = {1, 2, 3}, .max_tokens = 1});
  ASSERT_TRUE(engine.finish());
  EXPECT_HAS(engine.take(finished)->error->message, "its state at position 3 is not finite (kda of layer 0)");
  EXPECT_HAS(engine.take(kept)->error->message, "its state at position 2 is not finite (kda of layer 0)");
  EXPECT_EQ(engine.take(fine)->finish, Finish::length);
  ASSERT_EQ(engine.kept_states().all().size(), 1u);
  EXPECT_EQ(engine.kept_states().all()[0].tokens, (Ids{1, 2, 3}));
  EXPECT_EQ(engine.counters().non_finite, 2u);

  // Infinity counts as NaN does; rows past the boundary do not count.
  FakeModel other(facts());
  StateMemory &memory = other.state();
  const BlockTable table = {2};
  ASSERT_TRUE(memory.fill(table, std::vector<int32_t>{1}, {}));
  const float infinity = INFINITY;
  const StateMember &latent = memory.layout().members[0];
  ASSERT_TRUE(other.memory.write(0, latent.offset + 2 * latent.unit_bytes + 8, std::as_bytes(std::span(&infinity, 1))));
  EXPECT_EQ(*memory.non_finite({table, 1, 3}), "latent of layer 1");
  EXPECT_EQ(*memory.non_finite({table, 1, 2}), "");
}

// A child of the broken sequence that shares its blocks fails for the same reason; what it shares is scrubbed with the last
// owner.
TEST_F(Guard, SharedMemory) {
  Engine engine(model, {.kept_states = 4});
  start(engine);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(engine.step());
  const int32_t first = engine.find(bad)->table[0];
  const auto child = *engine.fork(bad, {.tokens = {}, .max_tokens = 9, .sampling = {1, 1, 3}});
  model.spoil(StateKind::latent, first);
  ASSERT_TRUE(engine.step());
  EXPECT_FALSE(engine.find(bad));
  EXPECT_FALSE(engine.find(child));
  EXPECT_TRUE(model.block_is(first, {}));
  EXPECT_EQ(engine.take(child)->finish, Finish::failed);
  EXPECT_EQ(engine.counters().non_finite, 2u);
  ASSERT_TRUE(engine.finish());
  for (const auto &[id, request] : others)
    EXPECT_EQ(engine.take(id)->tokens, expected(request, facts()).tokens);
}

TEST_F(Guard, BrokenMemoryStopsTheEngine) {
  model.broken_id = 32;
  model.breaks_state = true;
  Engine engine(model);
  start(engine);
  model.memory.fail_after = 0; // the scrub fails: nobody may get those blocks
  auto done = engine.finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the fake memory is gone");
  EXPECT_FALSE(engine.step());
  EXPECT_TRUE(engine.idle()); // nobody waits for ever
  for (const auto &[id, request] : others) {
    const auto out = engine.take(id);
    ASSERT_TRUE(out && out->error);
    EXPECT_EQ(out->error->message, "the fake memory is gone");
  }
}

// On a mesh the parts of a state that other ranks hold count as well: the sequence ends on all of them, or on none.
TEST_F(Guard, APartOfAnotherRank) {
  struct Rank : FakeModel {
    using FakeModel::FakeModel;
    Result<std::string> non_finite(const StatePlace &) override { return std::string("the part of another rank"); }
  } rank(facts());
  Engine engine(rank, {.kept_states = 4});
  const auto id = *engine.add({.tokens = {1, 2, 3}, .max_tokens = 1});
  ASSERT_TRUE(engine.finish());
  EXPECT_HAS(engine.take(id)->error->message, "its state at position 3 is not finite (the part of another rank)");
  EXPECT_TRUE(engine.kept_states().empty());
  expect_empty(engine);
}

} // namespace
} // namespace k31::engine
