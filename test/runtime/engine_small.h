// A small plan for the engine's tests, and what a request gives alone.
#pragma once
#include "runtime/engine/engine.h"
#include "test/runtime/engine_fake_model.h"
#include <algorithm>
#include <random>

namespace k31::engine::test {

using Ids = std::vector<int32_t>;

inline ModelFacts facts(uint32_t blocks = 40, uint32_t slots = 6) {
  ModelFacts model;
  model.vocab = 97, model.max_context = 60, model.block_tokens = 4, model.table_blocks = 15, model.blocks = blocks,
  model.slots = slots;
  model.entries = {{"prefill_16", false, 16, 6, 6, true, true},
                   {"prefill_5", false, 5, 2, 2, false, false},
                   {"decode_6", true, 6, 6, 6, false, false},
                   {"decode_1", true, 1, 1, 1, false, false}};
  return model;
}

inline ModelFacts with_depth(ModelFacts model, uint32_t depth) {
  model.depth = depth;
  return model;
}

// What the request gives alone, from the definition of the fake model.
inline Output expected(const Request &request, const ModelFacts &model) {
  Output out;
  Ids ids = request.tokens;
  for (;;) {
    if (out.tokens.size() == request.max_tokens) {
      out.finish = Finish::length;
      return out;
    }
    const Sampling &s = request.sampling;
    const int32_t id = draw_id(next_id(ids, model.vocab), s.temperature, s.top_p, s.seed, out.tokens.size(), model.vocab);
    out.tokens.push_back(id);
    if (std::find(request.stop.begin(), request.stop.end(), id) != request.stop.end()) {
      out.finish = Finish::stop;
      return out;
    }
    if (out.tokens.size() == request.max_tokens) {
      out.finish = Finish::length;
      return out;
    }
    if (ids.size() == model.max_context) {
      out.finish = Finish::context;
      return out;
    }
    ids.push_back(id);
  }
}

inline Ids random_ids(std::mt19937 &random, size_t count, uint32_t vocab = 97) {
  Ids ids(count);
  for (int32_t &id : ids)
    id = int32_t(random() % vocab);
  return ids;
}

inline void expect_empty(const Engine &engine) {
  EXPECT_TRUE(engine.idle());
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
  EXPECT_EQ(engine.slots().available(), engine.slots().total());
}

inline Output run_one(Engine &engine, Request request) {
  auto id = engine.add(std::move(request));
  EXPECT_TRUE(id) << id.error().message;
  auto done = engine.finish();
  EXPECT_TRUE(done) << done.error().message;
  return *engine.take(*id);
}

} // namespace k31::engine::test
