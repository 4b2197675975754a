// What an engine is asked: requests, forks, held sequences, states, outputs.
#include "runtime/engine/engine.h"
#include "runtime/base/cat.h"
#include "runtime/engine/state_image.h"
#include <algorithm>
#include <cmath>

namespace k31::engine {

Engine::Engine(Executor &executor, EngineOptions options)
    : executor(executor), model(executor.facts()), options(options), block_pool(model.blocks, model.block_tokens),
      state_pool(model.slots), kept(options.kept_states), scheduler(model, options.chunk) {
  candidates.reserve(model.slots);
  running.reserve(model.slots);
  freed_blocks.reserve(model.blocks);
  freed_slots.reserve(model.slots);
  runs.reserve(model.depth);
  for (uint32_t i = 0; i < model.depth; ++i)
    runs.emplace_back(model).awaited.reserve(model.slots);
}

Engine::~Engine() = default;

static Result<void> check_ids(std::span<const int32_t> ids, uint32_t vocab) {
  for (const int32_t id : ids)
    if (id < 0 || uint32_t(id) >= vocab)
      return fail(Code::invalid_input, cat("token id ", id, " is not in the vocabulary of ", vocab,
                                           "; encode the text with this checkpoint's tokenizer"));
  return {};
}

// A sequence for the request, which starts with `tokens`.
Result<Engine::Owned> Engine::check(Request request, std::vector<int32_t> tokens) {
  const uint64_t count = tokens.size();
  if (!count)
    return fail(Code::invalid_input, "the prompt is empty; expected at least one token");
  if (count > model.max_context)
    return fail(Code::invalid_input, cat("the prompt has ", count, " tokens, and the plan serves ", model.max_context,
                                         " positions; shorten it or compile with a larger --max-context"));
  if (block_pool.needed(count) > block_pool.total())
    return fail(Code::out_of_memory,
                cat("the prompt has ", count, " tokens and needs ", block_pool.needed(count), " cache blocks, and the pool has ",
                    block_pool.total(), "; compile with a larger --cache-tokens"));
  K31_TRY(check_ids(tokens, model.vocab));
  const Sampling &sampling = request.sampling;
  if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature) || !(sampling.top_p > 0) || sampling.top_p > 1)
    return fail(Code::invalid_input, cat("temperature ", sampling.temperature, " and top_p ", sampling.top_p,
                                         "; expected a temperature of at least 0 and top_p above 0 and at most 1"));
  if (request.hold && request.max_tokens)
    return fail(Code::invalid_input, "a held sequence draws nothing; fork it to draw");
  const bool logits = request.on_logits || request.max_tokens;
  if (logits && std::none_of(model.entries.begin(), model.entries.end(), [](const EntryFacts &e) { return e.logit_rows; }))
    return fail(Code::unsupported, "no entry of the plan gives logits");

  auto sequence = std::make_unique<Sequence>();
  if (request.state) {
    K31_ASSIGN(const uint32_t saved,
               executor.agree_position(check_state(executor.state(), *request.state, tokens).map(&SavedState::position)));
    if (saved == count && !request.hold)
      return fail(Code::invalid_input, cat("the saved state holds all ", count, " tokens; give at least one more to run"));
    sequence->logits_given = sequence->saved = saved;
  }
  sequence->id = next_id++;
  // All memory that the sequence will need, so that steps take none.
  tokens.reserve(std::min<uint64_t>(count + request.max_tokens, uint64_t(model.max_context) + 1));
  sequence->tokens = std::move(tokens);
  sequence->prompt = count;
  sequence->table.reserve(model.table_blocks);
  sequence->request = std::move(request);
  return sequence;
}

Result<SequenceId> Engine::add_in_slot(Request request, int32_t slot) {
  if (slot >= 0 && uint32_t(slot) >= model.slots)
    return fail(Code::invalid_input, cat("state slot ", slot, " of ", model.slots));
  std::vector<int32_t> tokens = std::move(request.tokens);
  K31_ASSIGN(Owned sequence, check(std::move(request), std::move(tokens)));
  sequence->wanted_slot = slot;
  waiting.push_back(std::move(sequence));
  return waiting.back()->id;
}

Result<SequenceId> Engine::fork(SequenceId parent_id, Request request) {
  K31_TRY(settle());
  const Sequence *parent = find(parent_id);
  if (!parent)
    return fail(Code::not_found, cat("sequence ", parent_id, " has ended; there is nothing to go on from"));
  std::vector<int32_t> tokens = parent->tokens;
  tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
  if (tokens.size() == parent->done && !request.hold)
    return fail(Code::invalid_input, cat("all ", tokens.size(), " tokens of the parent have run; give at least one more to run"));
  request.state.reset();
  K31_ASSIGN(Owned child, check(std::move(request), std::move(tokens)));
  child->logits_given = parent->tokens.size();
  const SequenceId id = child->id;
  if (!parent->done) {
    waiting.push_back(std::move(child));
    return id;
  }
  child->done = parent->done;
  child->table = block_pool.share(parent->table, block_pool.needed(parent->done));
  child->slot = state_pool.share(parent->slot);
  running.push_back(std::move(child)); // the youngest
  return id;
}

Sequence *Engine::held(SequenceId id, Result<void> &error) {
  auto *sequence = const_cast<Sequence *>(find(id));
  if (!sequence)
    error = fail(Code::not_found, cat("sequence ", id, " has ended"));
  else if (!sequence->request.hold)
    error = fail(Code::invalid_input, cat("sequence ", id, " draws its own tokens; set Request::hold to drive one"));
  return error ? sequence : nullptr;
}

Result<void> Engine::extend(SequenceId id, std::span<const int32_t> tokens) {
  K31_TRY(settle());
  Result<void> error;
  Sequence *s = held(id, error);
  if (!s)
    return error;
  const uint64_t count = s->tokens.size() + tokens.size();
  if (count > model.max_context)
    return fail(Code::invalid_input, cat("sequence ", id, " would have ", count, " tokens, and the plan serves ",
                                         model.max_context, " positions; compile with a larger --max-context"));
  K31_TRY(check_ids(tokens, model.vocab));
  s->tokens.insert(s->tokens.end(), tokens.begin(), tokens.end());
  s->asleep &= tokens.empty();
  return {};
}

Result<void> Engine::mark(SequenceId id) {
  K31_TRY(settle());
  Result<void> error;
  Sequence *s = held(id, error);
  if (!s || !s->done)
    return error;
  drop_mark(*s);
  s->mark = {s->done, state_pool.share(s->slot)};
  return {};
}

Result<void> Engine::rollback(SequenceId id, uint32_t tokens) {
  K31_TRY(settle());
  Result<void> error;
  Sequence *s = held(id, error);
  if (!s)
    return error;
  if (tokens == 0 || tokens > s->tokens.size())
    return fail(Code::invalid_input, cat("sequence ", id, " has ", s->tokens.size(), " tokens and cannot go back to ", tokens));
  s->tokens.resize(tokens);
  s->prompt = std::min<size_t>(s->prompt, tokens);
  s->logits_given = std::min<uint64_t>(s->logits_given, tokens);
  if (s->saved > tokens) // other tokens may follow
    s->request.state.reset();
  if (s->mark.position > tokens)
    drop_mark(*s);
  if (s->done > tokens)
    go_to_mark(*s);
  return {};
}

Result<std::vector<std::byte>> Engine::save(SequenceId id) {
  K31_TRY(settle());
  const Sequence *s = find(id);
  if (!s || !s->done)
    return fail(Code::not_found,
                cat("sequence ", id, s ? " has no state at present; give it something to run, and step" : " has ended"));
  K31_ASSIGN(const std::string non_finite, executor.non_finite(place(*s))); // fails on all ranks when one cannot read its part
  return save_state(executor.state(), place(*s), s->tokens, non_finite);
}

bool Engine::idle() const {
  const auto rests = [](const Owned &sequence) { return sequence->rests(); };
  return std::all_of(waiting.begin(), waiting.end(), rests) && std::all_of(running.begin(), running.end(), rests);
}

std::optional<Output> Engine::take(SequenceId id) {
  const auto it = outputs.find(id);
  if (it == outputs.end())
    return std::nullopt;
  Output output = std::move(it->second);
  outputs.erase(it);
  return output;
}

const Sequence *Engine::find(SequenceId id) const {
  const auto is = [&](const Owned &sequence) { return sequence->id == id; };
  if (const auto it = std::find_if(running.begin(), running.end(), is); it != running.end())
    return it->get();
  const auto it = std::find_if(waiting.begin(), waiting.end(), is);
  return it == waiting.end() ? nullptr : it->get();
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
