// Several runs under way at once, as pipeline stages have them: who waits for what, in how many groups sequences decode, and what
// happens to those that are cancelled or whose results do not come.
#include "test/runtime/engine_small.h"

namespace k31::engine {
namespace {

using namespace test;

std::map<SequenceId, Request> add(Engine &engine, uint32_t count, uint32_t tokens) {
  std::map<SequenceId, Request> added;
  for (uint32_t i = 0; i < count; ++i) {
    Request request{.tokens = {int32_t(i), 5, 6}, .max_tokens = tokens};
    added.emplace(*engine.add(request), request);
  }
  return added;
}

TEST(EngineStages, DecodingSequencesFormAsManyGroups) {
  for (const uint32_t depth : {1u, 2u, 3u, 6u}) {
    SCOPED_TRACE(depth);
    FakeModel model(with_depth(facts(80), depth));
    Engine engine(model);
    const auto added = add(engine, 6, 40);
    for (int i = 0; i < 12; ++i) // until all have drawn
      ASSERT_TRUE(engine.step());
    model.most_segments = 0;
    model.segments_seen.clear();
    const int before = model.runs;
    for (uint32_t i = 0; i < depth; ++i)
      ASSERT_TRUE(engine.step());
    EXPECT_EQ(model.most_segments, 6 / depth);
    EXPECT_EQ(model.runs - before, int(depth));
    EXPECT_EQ(model.segments_seen.size(), 6u); // each once
    EXPECT_EQ(model.most_under_way, depth);
    ASSERT_TRUE(engine.finish());
    for (const auto &[id, request] : added)
      EXPECT_EQ(engine.take(id)->tokens, expected(request, facts()).tokens);
    expect_empty(engine);
  }
}

TEST(EngineStages, PartsOfAPromptDoNotWait) {
  FakeModel model(with_depth(facts(), 2));
  Engine engine(model);
  Request request{.tokens = Ids(50, 7), .max_tokens = 3};
  const SequenceId id = *engine.add(request);
  for (uint32_t done : {16u, 32u, 48u, 50u}) { // a run a step; nothing is fetched before the last part
    ASSERT_TRUE(engine.step());
    EXPECT_EQ(engine.find(id)->done, done);
    EXPECT_EQ(model.fetches, 0);
  }
  EXPECT_TRUE(engine.find(id)->awaits);
  EXPECT_FALSE(engine.idle());
  const auto report = engine.step(); // nothing else to run: takes the id and runs it
  ASSERT_TRUE(report);
  EXPECT_EQ(report->drawn, 1u);
  EXPECT_EQ(report->rows, 1u);
  ASSERT_TRUE(engine.finish());
  EXPECT_EQ(engine.take(id)->tokens, expected(request, facts()).tokens);
  expect_empty(engine);
}

// A part that is not the last one needs no results, so the first stage goes on while the next one works on it.
TEST(EngineStages, PromptsAreCutForTheStages) {
  const auto part = [](uint32_t depth, uint32_t pending) {
    ModelFacts model = with_depth(facts(10000, 4), depth);
    model.entries = {{"prefill_2048", false, 2048, 4, 4, false, false}};
    Work work;
    const Candidate candidate{.pending = pending, .sample = true};
    EXPECT_TRUE(Scheduler(model, 0).choose({&candidate, 1}, 10000, 4, work));
    return work.rows;
  };
  EXPECT_EQ(part(1, 2000), 2000u);
  EXPECT_EQ(part(2, 2000), 1000u);
  EXPECT_EQ(part(4, 2000), 500u);
  EXPECT_EQ(part(4, 1000), 256u);
  EXPECT_EQ(part(2, 200), 200u);
  EXPECT_EQ(part(2, 9000), 2048u);
}

TEST(EngineStages, WhoIsCancelledGetsNothing) {
  FakeModel model(with_depth(facts(), 3));
  Engine engine(model, {.poison = true});
  auto added = add(engine, 6, 9);
  ASSERT_TRUE(engine.step());
  ASSERT_TRUE(engine.find(1)->awaits);
  engine.cancel(1);
  added.erase(1);
  ASSERT_TRUE(engine.finish());
  EXPECT_FALSE(engine.take(1));
  for (const auto &[id, request] : added)
    EXPECT_EQ(engine.take(id)->tokens, expected(request, facts()).tokens);
  expect_empty(engine);
}

TEST(EngineStages, ANonFiniteSequenceEndsAlone) {
  for (const bool state : {false, true}) {
    FakeModel model(with_depth(facts(), 3));
    model.broken_id = 90, model.breaks_state = state; // an id that the others do not draw
    Engine engine(model, {.poison = true});
    const SequenceId bad = *engine.add({.tokens = {31, 32, 90}, .max_tokens = 9});
    const auto added = add(engine, 5, 9);
    ASSERT_TRUE(engine.finish());
    const auto out = engine.take(bad);
    ASSERT_TRUE(out && out->error);
    EXPECT_NE(out->error->message.find("the logits at position 2 are not finite"), std::string::npos) << out->error->message;
    EXPECT_EQ(out->error->message.find("neither is its state") != std::string::npos, state) << out->error->message;
    EXPECT_EQ(engine.counters().non_finite, 1u);
    for (const auto &[id, request] : added)
      EXPECT_EQ(engine.take(id)->tokens, expected(request, facts()).tokens);
    expect_empty(engine);
  }
}

TEST(EngineStages, ResultsThatDoNotComeFailTheirSequencesAlone) {
  FakeModel model(with_depth(facts(), 2));
  Engine engine(model);
  const auto added = add(engine, 4, 9);
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(engine.step());
  model.fail_at_fetch = model.fetches;
  const auto failed = engine.step();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the fake peer is gone");
  model.fail_at_fetch = -1;
  uint32_t ended = 0;
  for (const auto &[id, request] : added)
    ended += !engine.find(id);
  EXPECT_EQ(ended, 2u);
}

} // namespace
} // namespace k31::engine
