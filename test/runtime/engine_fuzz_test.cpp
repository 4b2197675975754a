// Random calls over small pools: admit, extend, share, fork, mark, roll back, save, restore, finish and preempt. After every step
// the owners of all blocks and slots are compared with a map made from the sequences, what nobody owns must be poison, and every
// state must be exactly the one that its tokens leave behind. Every sequence's tokens equal its run alone.
#include "test/runtime/engine_small.h"

namespace k31::engine {
namespace {

using namespace test;

class Fuzz {
public:
  explicit Fuzz(uint32_t seed)
      : random(seed), model(with_depth(facts(15 + below(60), 2 + below(11)), 1 + seed % 3)),
        engine(model, {.chunk = below(2) ? below(9) + 1 : 0,
                       .kept_states = below(4) ? below(8) : 0,
                       .check_state = below(4),
                       .poison = true}) {
    for (Ids &text : texts)
      text = random_ids(random, 40);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      act();
      auto report = engine.step();
      ASSERT_TRUE(report) << report.error().message;
      take_finished();
      check();
      ++counts["step"];
    }
    end();
  }

  std::map<std::string, uint64_t> counts; // what was done

private:
  struct Drawing {
    Request request; // with all tokens from the beginning
  };

  uint32_t below(uint32_t n) { return random() % n; }
  // One of the ids, or 0.
  template <class Map> SequenceId any(const Map &map) {
    return map.empty() ? 0 : std::next(map.begin(), below(uint32_t(map.size())))->first;
  }

  // A prompt that begins as others do.
  Ids prompt() {
    const Ids &text = texts[below(3)];
    Ids ids(text.begin(), text.begin() + below(30) + 1);
    const Ids tail = random_ids(random, below(8));
    ids.insert(ids.end(), tail.begin(), tail.end());
    return ids;
  }

  Request drawing_request(Ids tokens) {
    Request request{.tokens = std::move(tokens), .max_tokens = below(20) + 1};
    if (below(2))
      request.sampling = {float(below(20)) / 10, float(below(10) + 1) / 10, random()};
    for (uint32_t n = below(2); n; --n)
      request.stop.push_back(int32_t(below(97)));
    return request;
  }

  void add(Request request, const char *what) {
    for (uint32_t n = below(3); n; --n)
      request.keep.push_back(below(25) + 1);
    const auto id = engine.add(request);
    ASSERT_TRUE(id) << id.error().message;
    request.state.reset();
    if (request.hold)
      held[*id] = request.tokens;
    else
      drawing[*id] = {request};
    ++counts[what];
  }

  void act() {
    const SequenceId h = any(held), d = any(drawing);
    switch (below(16)) {
    case 0:
    case 1:
    case 2:
      if (engine.in_flight() < 14)
        add(drawing_request(prompt()), "admit");
      break;
    case 3:
      if (held.size() < 3)
        add({.tokens = prompt(), .hold = true}, "hold");
      break;
    case 4:
    case 5:
      extend(h);
      break;
    case 6:
    case 7:
      if (engine.in_flight() < 20)
        fork(below(2) ? h : d);
      break;
    case 8:
      if (h) {
        ASSERT_TRUE(engine.mark(h));
        ++counts["mark"];
      }
      break;
    case 9:
    case 10:
      if (h) {
        held[h].resize(below(uint32_t(held[h].size())) + 1);
        ASSERT_TRUE(engine.rollback(h, uint32_t(held[h].size())));
        ++counts["rollback"];
      }
      break;
    case 11:
      save(below(2) ? h : d);
      break;
    case 12:
      if (image && engine.in_flight() < 14) {
        Ids tokens = image_tokens, more = random_ids(random, below(5) + 1);
        tokens.insert(tokens.end(), more.begin(), more.end());
        Request request = drawing_request(tokens);
        request.hold = held.size() < 3 && below(2);
        if (request.hold)
          request.max_tokens = 0;
        request.state = image;
        add(std::move(request), "restore");
      }
      break;
    case 13:
      if (const SequenceId id = below(3) ? 0 : below(2) ? h : d) {
        engine.cancel(id);
        held.erase(id), drawing.erase(id);
        ++counts["cancel"];
      }
      break;
    case 14:
      if (!below(20))
        engine.forget();
      break;
    default:
      break; // only the step
    }
  }

  void extend(SequenceId id) {
    if (!id)
      return;
    const Ids more = random_ids(random, below(6) + 1);
    const bool fits = held[id].size() + more.size() <= model.facts().max_context;
    ASSERT_EQ(bool(engine.extend(id, more)), fits);
    if (fits)
      held[id].insert(held[id].end(), more.begin(), more.end());
    ++counts["extend"];
  }

  void fork(SequenceId parent) {
    ASSERT_TRUE(engine.settle()); // fork() does so too, and the tokens are those of then
    const Sequence *s = parent ? engine.find(parent) : nullptr;
    if (!s || s->tokens.size() > 55)
      return;
    Request request = drawing_request(random_ids(random, below(3) + (s->pending() ? 0 : 1)));
    Ids tokens = s->tokens;
    tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
    const bool shares = s->done;
    const auto id = engine.fork(parent, request);
    ASSERT_TRUE(id) << id.error().message;
    request.tokens = std::move(tokens);
    drawing[*id] = {request};
    ++counts[shares ? "fork" : "fork without a state"];
  }

  void save(SequenceId id) {
    ASSERT_TRUE(engine.settle());
    const Sequence *s = id ? engine.find(id) : nullptr;
    if (!s || !s->done)
      return;
    auto saved = engine.save(id);
    ASSERT_TRUE(saved) << saved.error().message;
    image = std::make_shared<const std::vector<std::byte>>(std::move(*saved));
    image_tokens.assign(s->tokens.begin(), s->tokens.begin() + s->done);
    if (image_tokens.size() > 50)
      image.reset();
    ++counts["save"];
  }

  void take_finished() {
    for (auto it = drawing.begin(); it != drawing.end();) {
      const auto out = engine.take(it->first);
      if (!out) {
        ++it;
        continue;
      }
      const Output want = expected(it->second.request, model.facts());
      if (out->error) { // a pool that is too small for the sequence alone
        ASSERT_EQ(out->error->code, Code::out_of_memory) << out->error->message;
        ASSERT_TRUE(std::equal(out->tokens.begin(), out->tokens.end(), want.tokens.begin()));
        ++counts["too long"];
      } else {
        ASSERT_EQ(out->tokens, want.tokens);
        ASSERT_EQ(out->finish, want.finish);
        ++counts["finish"];
      }
      it = drawing.erase(it);
    }
    for (auto it = held.begin(); it != held.end();) {
      const auto out = engine.take(it->first);
      if (out)
        ASSERT_EQ(out->error->code, Code::out_of_memory) << out->error->message;
      it = out ? held.erase(it) : std::next(it);
    }
  }

  void check() {
    std::map<int32_t, uint32_t> blocks, slots;
    const auto own = [&](const BlockTable &table, std::initializer_list<int32_t> of) {
      for (const int32_t block : table)
        ++blocks[block];
      for (const int32_t slot : of)
        if (slot >= 0)
          ++slots[slot];
    };
    const auto sequence = [&](SequenceId id, const Ids *tokens) {
      const Sequence *s = engine.find(id);
      ASSERT_TRUE(s);
      own(s->table, {s->slot, s->next_slot, s->mark.slot});
      if (tokens)
        ASSERT_EQ(s->tokens, *tokens);
      ASSERT_EQ(s->table.size(), engine.blocks().needed(s->done));
      ASSERT_EQ(s->slot >= 0, s->done > 0);
      if (s->done)
        ASSERT_TRUE(model.holds(std::span(s->tokens).first(s->done), s->table, s->slot));
      if (s->mark.slot >= 0)
        ASSERT_TRUE(model.holds_slot(std::span(s->tokens).first(s->mark.position), s->mark.slot));
    };
    for (const auto &[id, d] : drawing)
      sequence(id, nullptr);
    for (const auto &[id, tokens] : held)
      sequence(id, &tokens);
    for (const KeptState &kept : engine.kept_states().all()) {
      own(kept.table, {kept.slot});
      ASSERT_TRUE(model.holds(kept.tokens, kept.table, kept.slot));
    }
    for (int32_t block = 0; block < int32_t(engine.blocks().total()); ++block) {
      ASSERT_EQ(engine.blocks().owners_of(block), blocks[block]) << "block " << block;
      if (!blocks[block])
        ASSERT_TRUE(model.block_is(block, std::byte{0xff})) << "block " << block << " is free and not poison";
      counts["shared blocks"] += blocks[block] > 1;
    }
    for (int32_t slot = 0; slot < int32_t(engine.slots().total()); ++slot) {
      ASSERT_EQ(engine.slots().owners_of(slot), slots[slot]) << "slot " << slot;
      if (!slots[slot])
        ASSERT_TRUE(model.slot_is(slot, std::byte{0xff})) << "slot " << slot << " is free and not poison";
      counts["shared slots"] += slots[slot] > 1;
    }
  }

  void end() {
    for (int i = 0; i < 3000 && !engine.idle(); ++i)
      ASSERT_TRUE(engine.step());
    ASSERT_TRUE(engine.idle()) << "sequences starve";
    take_finished();
    ASSERT_TRUE(drawing.empty());
    check();
    for (const auto &[id, tokens] : held)
      engine.cancel(id);
    counts["preempt"] += engine.counters().preemptions;
    counts["reuse"] += engine.counters().reuses;
    counts["copy"] += engine.counters().copied_blocks;
    counts["under way at once"] += model.most_under_way;
    EXPECT_EQ(engine.counters().non_finite, 0u);
    engine.forget();
    expect_empty(engine);
  }

  std::mt19937 random;
  FakeModel model;
  Engine engine;
  std::array<Ids, 3> texts;
  std::map<SequenceId, Drawing> drawing;
  std::map<SequenceId, Ids> held; // tokens
  std::shared_ptr<const std::vector<std::byte>> image;
  Ids image_tokens;
};

TEST(EngineFuzz, RandomCallsOverSmallPools) {
  std::map<std::string, uint64_t> counts;
  for (uint32_t seed = 1; seed <= 90; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Fuzz fuzz(seed);
    fuzz.run(500);
    for (const auto &[what, count] : fuzz.counts)
      counts[what] += count;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(counts["step"], 45000u);
  EXPECT_GE(counts["under way at once"], 170u); // 30 seeds each of depth 1, 2 and 3; two slots are too few for 3
  for (const char *what : {"admit", "hold", "extend", "fork", "mark", "rollback", "save", "restore", "cancel", "finish",
                           "preempt", "reuse", "copy", "shared blocks", "shared slots"})
    EXPECT_GE(counts[what], 100u) << what;
}

} // namespace
} // namespace k31::engine
