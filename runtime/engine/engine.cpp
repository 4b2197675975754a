#include "runtime/engine/engine.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <cassert>
#include <cmath>

namespace k31::engine {

struct Engine::Sequence {
  SequenceId id;
  Request request;
  std::vector<int32_t> tokens; // prompt and drawn
  BlockTable table;
  int32_t wanted_slot = -1; // -1: any
  int32_t slot = -1;
  uint32_t done = 0;         // positions in the cache
  uint32_t drawn = 0;        // tokens
  uint64_t logits_given = 0; // positions
  uint64_t last_step = 0;
  bool ended = false;

  uint32_t pending() const { return uint32_t(tokens.size()) - done; }
};

Engine::Engine(Executor &executor, EngineOptions options)
    : executor(executor), model(executor.facts()), block_pool(model.blocks, model.block_tokens), state_pool(model.slots),
      scheduler(model, options.chunk), batch(model) {
  candidates.reserve(model.slots);
  running.reserve(model.slots);
}

Engine::~Engine() = default;

Result<SequenceId> Engine::add_in_slot(Request request, int32_t slot) {
  const uint64_t count = request.tokens.size();
  if (!count)
    return fail(Code::invalid_input, "the prompt is empty; expected at least one token");
  if (count > model.max_context)
    return fail(Code::invalid_input, cat("the prompt has ", count, " tokens, and the plan serves ", model.max_context,
                                         " positions; shorten it or compile with a larger --max-context"));
  if (block_pool.needed(count) > block_pool.total())
    return fail(Code::out_of_memory,
                cat("the prompt has ", count, " tokens and needs ", block_pool.needed(count), " cache blocks, and the pool has ",
                    block_pool.total(), "; compile with a larger --cache-tokens"));
  for (const int32_t id : request.tokens)
    if (id < 0 || uint32_t(id) >= model.vocab)
      return fail(Code::invalid_input, cat("token id ", id, " is not in the vocabulary of ", model.vocab));
  const Sampling &sampling = request.sampling;
  if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature) || !(sampling.top_p > 0) || sampling.top_p > 1)
    return fail(Code::invalid_input, cat("temperature ", sampling.temperature, " and top_p ", sampling.top_p,
                                         "; expected a temperature of at least 0 and top_p above 0 and at most 1"));
  if (slot >= 0 && uint32_t(slot) >= model.slots)
    return fail(Code::invalid_input, cat("state slot ", slot, " of ", model.slots));
  const bool logits = request.on_logits || request.max_tokens;
  if (logits && std::none_of(model.entries.begin(), model.entries.end(), [](const EntryFacts &e) { return e.logit_rows; }))
    return fail(Code::unsupported, "no entry of the plan gives logits");

  auto sequence = std::make_unique<Sequence>();
  sequence->id = next_id++;
  sequence->wanted_slot = slot;
  // All memory that the sequence will need, so that steps take none.
  sequence->tokens.reserve(std::min<uint64_t>(count + request.max_tokens, uint64_t(model.max_context) + 1));
  sequence->tokens = request.tokens;
  sequence->table.reserve(model.table_blocks);
  sequence->request = std::move(request);
  waiting.push_back(std::move(sequence));
  return waiting.back()->id;
}

// Moves waiting sequences to the running ones while there are slots, and blocks for all that they have now.
void Engine::admit() {
  uint32_t promised = 0; // blocks of those admitted in this step
  for (auto it = waiting.begin(); it != waiting.end() && state_pool.available();) {
    Sequence &sequence = **it;
    const uint32_t need = block_pool.needed(sequence.tokens.size());
    if (need > block_pool.total()) { // it grew past the pool before it was preempted
      BlockTable none;
      end(sequence, Finish::failed, block_pool.grow(none, sequence.tokens.size()).error());
      it = waiting.erase(it);
      continue;
    }
    if (need + promised > block_pool.available())
      return; // in order of arrival: a short one does not overtake a long one for ever
    if (sequence.wanted_slot >= 0 && !state_pool.is_free(sequence.wanted_slot)) {
      ++it;
      continue;
    }
    sequence.slot = *state_pool.take(sequence.wanted_slot);
    promised += need;
    const auto place = std::find_if(running.begin(), running.end(), [&](const Owned &other) { return other->id > sequence.id; });
    running.insert(place, std::move(*it));
    it = waiting.erase(it);
  }
}

// Chooses the work of this step. False when no running sequence can go on.
bool Engine::schedule() {
  candidates.clear();
  for (uint32_t i = 0; i < running.size(); ++i) {
    const Sequence &s = *running[i];
    candidates.push_back({i, s.done, s.pending(), uint32_t(s.table.size()), bool(s.request.on_logits),
                          s.drawn < s.request.max_tokens, s.last_step});
  }
  return scheduler.choose(candidates, block_pool.available(), work);
}

void Engine::release(Sequence &sequence) {
  block_pool.release(sequence.table);
  if (sequence.slot >= 0)
    state_pool.give(sequence.slot);
  sequence.slot = -1;
}

void Engine::end(Sequence &sequence, Finish finish, std::optional<Error> error) {
  release(sequence);
  sequence.ended = true;
  const auto drawn = sequence.tokens.begin() + int64_t(sequence.request.tokens.size());
  outputs.emplace(sequence.id, Output{{drawn, sequence.tokens.end()}, finish, std::move(error)});
}

// The youngest gives its memory back and starts again from its tokens; the oldest always goes on, so there is an end. A sequence
// that is alone and has no room left fails.
void Engine::preempt() {
  Sequence &youngest = *running.back();
  if (running.size() == 1) {
    auto grown = block_pool.grow(youngest.table, youngest.done + 1);
    end(youngest, Finish::failed,
        grown ? Error{Code::internal, "no entry of the plan can run the sequence"} : std::move(grown.error()));
  } else {
    release(youngest);
    youngest.done = 0;
    const auto place = std::find_if(waiting.begin(), waiting.end(), [&](const Owned &other) { return other->id > youngest.id; });
    waiting.insert(place, std::move(running.back()));
    ++preempted;
  }
  running.pop_back();
}

void Engine::collect() {
  std::erase_if(running, [](const Owned &sequence) { return sequence->ended; });
}

void Engine::draw(Sequence &sequence, int32_t id) {
  if (uint32_t(id) >= model.vocab)
    return end(sequence, Finish::failed,
               Error{Code::internal, cat("the plan drew id ", id, " from a vocabulary of ", model.vocab)});
  sequence.tokens.push_back(id);
  ++sequence.drawn;
  if (sequence.request.on_token)
    sequence.request.on_token(id);
  const std::vector<int32_t> &stop = sequence.request.stop;
  if (std::find(stop.begin(), stop.end(), id) != stop.end())
    end(sequence, Finish::stop);
  else if (sequence.drawn == sequence.request.max_tokens)
    end(sequence, Finish::length);
  else if (sequence.done == model.max_context)
    end(sequence, Finish::context);
}

// Takes the results of one segment, whose first logit row is `logit_row`; returns the tokens drawn.
uint32_t Engine::advance(Sequence &sequence, const ScheduledSegment &segment, uint32_t logit_row) {
  sequence.done += segment.length;
  sequence.last_step = steps;
  const uint64_t first = sequence.done - segment.logits; // position of the first row with logits
  for (uint32_t i = 0; i < segment.logits; ++i) {
    if (batch.sampled(logit_row + i) < 0) {
      end(sequence, Finish::failed,
          Error{Code::invalid_input,
                cat("the logits at position ", first + i, " are not finite; this sequence was ended, others go on")});
      return 0;
    }
    if (sequence.request.on_logits && first + i == sequence.logits_given) {
      sequence.request.on_logits(first + i, batch.logits(logit_row + i));
      ++sequence.logits_given;
    }
  }
  if (sequence.pending())
    return 0;
  if (sequence.drawn == sequence.request.max_tokens) {
    end(sequence, Finish::length);
    return 0;
  }
  draw(sequence, batch.sampled(logit_row + segment.logits - 1));
  return 1;
}

// Takes the blocks that the scheduled segments need, and runs them.
Result<void> Engine::run_batch() {
  batch.clear(work.entry);
  bool want_logits = false;
  for (const ScheduledSegment &segment : work.segments) {
    Sequence &s = *running[segment.index];
    K31_TRY(block_pool.grow(s.table, s.done + segment.length));
    batch.add(std::span(s.tokens).subspan(s.done, segment.length), s.done, s.slot, s.table, segment.logits, s.request.sampling,
              s.drawn);
    want_logits |= bool(s.request.on_logits);
  }
  return batch.run(executor, want_logits);
}

Result<StepReport> Engine::step() {
  admit();
  while (!running.empty() && !schedule())
    preempt();
  if (running.empty())
    return StepReport{};
  ++steps;
  if (auto ran = run_batch(); !ran) {
    for (const ScheduledSegment &segment : work.segments)
      end(*running[segment.index], Finish::failed, ran.error());
    collect();
    return tl::unexpected(ran.error());
  }
  StepReport report{work.entry, work.rows, uint32_t(work.segments.size()), 0};
  uint32_t logit_row = 0;
  for (const ScheduledSegment &segment : work.segments) {
    report.drawn += advance(*running[segment.index], segment, logit_row);
    logit_row += segment.logits;
  }
  collect();
  return report;
}

Result<void> Engine::finish() {
  while (!idle())
    K31_TRY(step());
  return {};
}

std::optional<Output> Engine::take(SequenceId id) {
  const auto it = outputs.find(id);
  if (it == outputs.end())
    return std::nullopt;
  Output output = std::move(it->second);
  outputs.erase(it);
  return output;
}

void Engine::cancel(SequenceId id) {
  const auto is = [&](const Owned &sequence) { return sequence->id == id; };
  std::erase_if(waiting, is);
  for (const Owned &sequence : running)
    if (is(sequence))
      release(*sequence);
  std::erase_if(running, is);
}

} // namespace k31::engine
