// The engine over a fake model: whatever is batched, cut, forced or preempted, every sequence gives the ids it gives alone.
#include "test/runtime/engine_small.h"

namespace k31::engine {
namespace {

using namespace test;

TEST(Engine, OneSequence) {
  FakeModel model(facts());
  Engine engine(model);
  Ids streamed;
  Request request{.tokens = {1, 2, 3}, .max_tokens = 20, .on_token = [&](int32_t id) { streamed.push_back(id); }};
  const Output want = expected(request, model.facts());
  const Output got = run_one(engine, request);
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.finish, Finish::length);
  EXPECT_EQ(streamed, want.tokens);
  EXPECT_EQ(model.used["prefill_5"], 1); // 3 tokens fit the small one
  EXPECT_EQ(model.used["decode_1"], 19);
  expect_empty(engine);
}

TEST(Engine, ChunksGiveTheSameIds) {
  std::mt19937 random(1);
  const Ids prompt = random_ids(random, 41);
  const Output want = expected({.tokens = prompt, .max_tokens = 10}, facts());
  for (const uint32_t chunk : {0u, 1u, 2u, 3u, 4u, 7u, 16u}) {
    FakeModel model(facts());
    Engine engine(model, {.chunk = chunk});
    EXPECT_EQ(run_one(engine, {.tokens = prompt, .max_tokens = 10}).tokens, want.tokens) << chunk;
    for (const auto &[start, length] : model.segments_seen)
      EXPECT_LE(length, chunk ? int32_t(chunk) : 16);
    expect_empty(engine);
  }
}

TEST(Engine, ForcedSlots) {
  FakeModel model(facts());
  Engine engine(model);
  const Request request{.tokens = {5, 6}, .max_tokens = 8};
  const Ids want = expected(request, model.facts()).tokens;
  std::vector<SequenceId> ids;
  for (const int32_t slot : {4, 4, 0, 5}) // the second waits for the first
    ids.push_back(*engine.add_in_slot(request, slot));
  ASSERT_TRUE(engine.finish());
  for (const SequenceId id : ids)
    EXPECT_EQ(engine.take(id)->tokens, want);
  EXPECT_FALSE(engine.add_in_slot(request, 6));
  expect_empty(engine);
}

TEST(Engine, StopContextAndNothingToDraw) {
  FakeModel model(facts());
  Engine engine(model);
  Request request{.tokens = {9}, .max_tokens = 30};
  const Ids all = expected(request, model.facts()).tokens;
  request.stop = {all[4]};
  const Output stopped = run_one(engine, request);
  EXPECT_EQ(stopped.finish, Finish::stop);
  EXPECT_EQ(stopped.tokens, expected(request, model.facts()).tokens);
  EXPECT_EQ(stopped.tokens.back(), all[4]);

  const Output full = run_one(engine, {.tokens = Ids(58, 3), .max_tokens = 100});
  EXPECT_EQ(full.finish, Finish::context);
  EXPECT_EQ(full.tokens.size(), 3u); // after positions 57, 58 and 59

  const Output none = run_one(engine, {.tokens = Ids(20, 3), .max_tokens = 0});
  EXPECT_EQ(none.finish, Finish::length);
  EXPECT_TRUE(none.tokens.empty());
  expect_empty(engine);
}

TEST(Engine, LogitsOfEveryPosition) {
  std::mt19937 random(2);
  for (const uint32_t chunk : {0u, 3u}) {
    FakeModel model(facts());
    Engine engine(model, {.chunk = chunk});
    std::vector<SequenceId> ids;
    std::vector<Ids> prompts, best(5);
    for (size_t i = 0; i < best.size(); ++i) {
      prompts.push_back(random_ids(random, 20 + i));
      ids.push_back(*engine.add({.tokens = prompts[i],
                                 .max_tokens = uint32_t(i),
                                 .on_logits = [&best, i](uint64_t position, std::span<const float> row) {
                                   EXPECT_EQ(position, best[i].size());
                                   best[i].push_back(int32_t(std::max_element(row.begin(), row.end()) - row.begin()));
                                 }}));
    }
    ASSERT_TRUE(engine.finish());
    for (size_t i = 0; i < best.size(); ++i) {
      Ids tokens = prompts[i];
      const Output out = *engine.take(ids[i]);
      EXPECT_EQ(out.tokens.size(), i);
      tokens.insert(tokens.end(), out.tokens.begin(), out.tokens.end());
      ASSERT_EQ(best[i].size(), prompts[i].size() + (i ? i - 1 : 0));
      for (size_t p = 0; p < best[i].size(); ++p)
        EXPECT_EQ(best[i][p], next_id(std::span(tokens).first(p + 1), 97));
    }
    expect_empty(engine);
  }
}

TEST(Engine, DecodesRunWithAPrompt) {
  FakeModel model(facts());
  Engine engine(model);
  const auto first = *engine.add({.tokens = {1, 2}, .max_tokens = 12});
  ASSERT_TRUE(engine.step());
  const auto second = *engine.add({.tokens = Ids(30, 8), .max_tokens = 3});
  auto report = engine.step();
  ASSERT_TRUE(report);
  EXPECT_EQ(model.facts().entries[report->entry].name, "prefill_16");
  EXPECT_EQ(report->rows, 16u); // one decode row and fifteen of the prompt
  EXPECT_EQ(report->segments, 2u);
  EXPECT_EQ(report->drawn, 1u);
  ASSERT_TRUE(engine.finish());
  EXPECT_EQ(engine.take(first)->tokens, expected({.tokens = {1, 2}, .max_tokens = 12}, model.facts()).tokens);
  EXPECT_EQ(engine.take(second)->tokens, expected({.tokens = Ids(30, 8), .max_tokens = 3}, model.facts()).tokens);
}

// Several hundred random sequences over pools of many sizes, arriving while others run.
TEST(Engine, RandomStress) {
  std::mt19937 random(20);
  uint64_t preemptions = 0;
  size_t sequences = 0;
  for (int round = 0; round < 24; ++round) {
    FakeModel model(facts(15 + random() % 40, 1 + random() % 8)); // 15 blocks hold the longest sequence
    Engine engine(model, {.chunk = random() % 2 ? uint32_t(random() % 9 + 1) : 0});
    std::map<SequenceId, Request> requests;
    std::map<SequenceId, Ids> streamed, best; // drawn ids; most likely ids of every position
    int to_add = 25;
    while (to_add || !engine.idle()) {
      if (to_add && (engine.idle() || random() % 3 == 0)) {
        Request request{.tokens = random_ids(random, random() % 45 + 1), .max_tokens = uint32_t(random() % 25)};
        if (random() % 2)
          request.sampling = {float(random() % 20) / 10, float(random() % 10 + 1) / 10, random()};
        for (int n = random() % 3; n; --n)
          request.stop.push_back(int32_t(random() % 97));
        const int32_t slot = random() % 8 == 0 ? int32_t(random() % model.facts().slots) : -1;
        auto next = std::make_shared<SequenceId>();
        request.on_token = [&streamed, next](int32_t id) { streamed[*next].push_back(id); };
        if (random() % 4 == 0)
          request.on_logits = [&best, next](uint64_t position, std::span<const float> row) {
            EXPECT_EQ(position, best[*next].size()); // once each, also after a preemption
            best[*next].push_back(int32_t(std::max_element(row.begin(), row.end()) - row.begin()));
          };
        const auto id = engine.add_in_slot(request, slot);
        ASSERT_TRUE(id) << id.error().message;
        *next = *id;
        requests.emplace(*id, std::move(request));
        --to_add;
      }
      auto report = engine.step();
      ASSERT_TRUE(report) << report.error().message;
    }
    for (const auto &[id, request] : requests) {
      const Output want = expected(request, model.facts());
      const auto got = engine.take(id);
      ASSERT_TRUE(got);
      EXPECT_FALSE(got->error) << got->error->message;
      EXPECT_EQ(got->tokens, want.tokens);
      EXPECT_EQ(got->finish, want.finish);
      EXPECT_EQ(streamed[id], want.tokens);
      if (request.on_logits) {
        Ids tokens = request.tokens;
        tokens.insert(tokens.end(), want.tokens.begin(), want.tokens.end());
        EXPECT_EQ(best[id].size(), tokens.size() - (want.tokens.empty() ? 0 : 1));
        for (size_t p = 0; p < best[id].size(); ++p)
          EXPECT_EQ(best[id][p], next_id(std::span(tokens).first(p + 1), 97));
      }
      ++sequences;
    }
    preemptions += engine.counters().preemptions;
    expect_empty(engine);
  }
  EXPECT_EQ(sequences, 600u);
  EXPECT_GT(preemptions, 20u); // the small pools did run out
}

TEST(Engine, PoolTooSmallForOneSequence) {
  FakeModel model(facts(5));
  Engine engine(model);
  EXPECT_FALSE(engine.add({.tokens = Ids(21, 1), .max_tokens = 1})); // 6 blocks
  const Output out = run_one(engine, {.tokens = Ids(18, 1), .max_tokens = 30});
  EXPECT_EQ(out.finish, Finish::failed);
  ASSERT_TRUE(out.error);
  EXPECT_EQ(out.error->code, Code::out_of_memory);
  EXPECT_NE(out.error->message.find("21 positions"), std::string::npos) << out.error->message;
  EXPECT_EQ(out.tokens.size(), 3u); // what fitted was drawn: after positions 17, 18 and 19
  expect_empty(engine);
}

TEST(Engine, NonFiniteLogitsFailOneSequence) {
  FakeModel model(facts());
  model.broken_id = 50;
  Engine engine(model);
  const auto bad = *engine.add({.tokens = {1, 2, 50}, .max_tokens = 5});
  Request good{.tokens = {4, 5}, .max_tokens = 0};
  while (++good.max_tokens < 12) { // as far as the good one does not draw the broken id itself
    const Ids ids = expected(good, model.facts()).tokens;
    if (ids.back() == 50)
      break;
  }
  --good.max_tokens;
  ASSERT_GT(good.max_tokens, 3u);
  const auto other = *engine.add(good);
  ASSERT_TRUE(engine.finish());
  const Output failed = *engine.take(bad);
  EXPECT_EQ(failed.finish, Finish::failed);
  ASSERT_TRUE(failed.error);
  EXPECT_NE(failed.error->message.find("position 2 are not finite"), std::string::npos) << failed.error->message;
  EXPECT_EQ(engine.take(other)->tokens, expected(good, model.facts()).tokens);
  expect_empty(engine);
}

TEST(Engine, FailedRunEndsItsSequences) {
  FakeModel model(facts());
  model.fail_at = 3;
  Engine engine(model);
  const auto a = *engine.add({.tokens = {1}, .max_tokens = 9}), b = *engine.add({.tokens = {2}, .max_tokens = 9});
  auto done = engine.finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::io);
  for (const SequenceId id : {a, b}) {
    const Output out = *engine.take(id);
    EXPECT_EQ(out.finish, Finish::failed);
    EXPECT_EQ(out.tokens.size(), 3u);
    EXPECT_EQ(out.error->message, "the fake device is gone");
  }
  expect_empty(engine);
  Request again{.tokens = {1}, .max_tokens = 9}; // the engine itself goes on
  EXPECT_EQ(run_one(engine, again).tokens, expected(again, model.facts()).tokens);
}

TEST(Engine, CancelFreesEverything) {
  FakeModel model(facts());
  Engine engine(model);
  const auto a = *engine.add({.tokens = Ids(30, 1), .max_tokens = 9});
  const auto b = *engine.add({.tokens = {2, 3}, .max_tokens = 9});
  ASSERT_TRUE(engine.step());
  engine.cancel(a);
  ASSERT_TRUE(engine.finish());
  EXPECT_FALSE(engine.take(a));
  EXPECT_EQ(engine.take(b)->tokens, expected({.tokens = {2, 3}, .max_tokens = 9}, model.facts()).tokens);
  expect_empty(engine);
}

TEST(Engine, RefusesWrongRequests) {
  FakeModel model(facts());
  Engine engine(model);
  EXPECT_FALSE(engine.add({.tokens = {}, .max_tokens = 1}));
  EXPECT_FALSE(engine.add({.tokens = {97}, .max_tokens = 1}));
  EXPECT_FALSE(engine.add({.tokens = {-1}, .max_tokens = 1}));
  EXPECT_FALSE(engine.add({.tokens = Ids(61, 1), .max_tokens = 1}));
  EXPECT_FALSE(engine.add({.tokens = {1}, .max_tokens = 1, .sampling = {-1, 1, 0}}));
  EXPECT_FALSE(engine.add({.tokens = {1}, .max_tokens = 1, .sampling = {1, 0, 0}}));
  EXPECT_FALSE(engine.add({.tokens = {1}, .max_tokens = 1, .sampling = {1, 1.5, 0}}));
  EXPECT_FALSE(engine.add({.tokens = {1}, .max_tokens = 1, .sampling = {NAN, 1, 0}}));
  EXPECT_TRUE(engine.idle());
}

} // namespace
} // namespace k31::engine
