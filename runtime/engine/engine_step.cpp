// The step: which work runs, the run, and what its results mean for each sequence.
#include "runtime/base/cat.h"
#include "runtime/engine/engine.h"
#include <algorithm>

namespace k31::engine {

// The memory that a run needs is made in this order: who waits is admitted (states that nobody uses make way), then the work is
// chosen, and when there is none, something is given up, unless sequences wait for results: they may end. False when nothing can
// run now.
bool Engine::choose() {
  admit();
  while (!schedule()) {
    if (idle() || awaiting() || !make_room())
      return false;
    if (std::none_of(running.begin(), running.end(), [](const Owned &sequence) { return sequence->pending(); }))
      admit(); // not before: what was just given up would be taken again
  }
  return true;
}

// Chooses the work of this step. False when no running sequence can go on.
bool Engine::schedule() {
  candidates.clear();
  for (uint32_t i = 0; i < running.size(); ++i) {
    const Sequence &s = *running[i];
    if (!s.pending() || s.awaits)
      continue;
    const uint32_t runnable = s.runnable();
    candidates.push_back({.index = i,
                          .done = s.done,
                          .pending = runnable,
                          .held = uint32_t(s.table.size()),
                          .all_logits = bool(s.request.on_logits),
                          .sample = s.drawn < s.request.max_tokens && runnable == s.pending(),
                          .last_step = s.last_step,
                          .copies_tail = s.done && block_pool.shared_tail(s.table, s.done),
                          .takes_slot = s.next_slot < 0 && (s.slot < 0 || state_pool.owners_of(s.slot) > 1)});
  }
  return scheduler.choose(candidates, block_pool.available(), state_pool.available(), work, awaiting());
}

// Takes the memory that the scheduled segments need, and runs them.
Result<void> Engine::run_batch() {
  Batch &batch = run_at(under_way).batch;
  batch.clear(work.entry);
  bool want_logits = false;
  for (const ScheduledSegment &segment : work.segments) {
    Sequence &s = *running[segment.index];
    K31_TRY(prepare(s, segment.length));
    batch.add(std::span(s.tokens).subspan(s.done, segment.length), s.done, s.slot, s.next_slot < 0 ? s.slot : s.next_slot,
              s.table, segment.logits, s.request.sampling, s.drawn);
    want_logits |= bool(s.request.on_logits);
  }
  return batch.run(executor, want_logits);
}

Result<StepReport> Engine::step() {
  if (broken) {
    for (const Owned &sequence : waiting)
      end(*sequence, Finish::failed, *broken);
    for (const Owned &sequence : running)
      end(*sequence, Finish::failed, *broken);
    waiting.clear();
    running.clear();
    return tl::unexpected(*broken);
  }
  StepReport report;
  bool found = choose();
  while (!found && under_way) { // what was drawn may run
    K31_ASSIGN(const uint32_t drawn, take_oldest());
    report.drawn += drawn;
    found = choose();
  }
  const auto wanted = found ? std::optional(work.entry) : std::nullopt;
  K31_ASSIGN(const std::optional<uint32_t> entry, executor.agree(wanted));
  if (!entry)
    return report;
  if (entry != wanted) // of another dp group: as much of the own work as fits, or nothing
    scheduler.fit(candidates, block_pool.available(), state_pool.available(), *entry, work, awaiting());
  ++steps;
  if (auto ran = run_batch(); !ran) {
    for (const ScheduledSegment &segment : work.segments)
      end(*running[segment.index], Finish::failed, ran.error());
    collect();
    return tl::unexpected(ran.error());
  }
  // Every state moves on before the first slot is given back: until then none of them may seem to be free.
  for (const ScheduledSegment &segment : work.segments)
    commit(*running[segment.index]);
  report = {work.entry, true, work.rows, uint32_t(work.segments.size()), report.drawn};
  Run &run = run_at(under_way);
  run.awaited.clear();
  for (const ScheduledSegment &segment : work.segments) {
    Sequence &s = *running[segment.index];
    s.done += segment.length;
    s.last_step = steps;
    s.awaits = segment.logits > 0;
    if (s.awaits)
      run.awaited.emplace_back(s.id, segment.logits);
    else
      report.drawn += advance(s, run.batch, 0, 0);
  }
  under_way += !run.awaited.empty();
  collect();
  if (under_way == runs.size()) {
    K31_ASSIGN(const uint32_t drawn, take_oldest());
    report.drawn += drawn;
  }
  return report;
}

uint32_t Engine::awaiting() const {
  return uint32_t(std::count_if(running.begin(), running.end(), [](const Owned &s) { return s->awaits; }));
}

// Takes the results of the oldest run; returns the tokens drawn. Sequences that were cancelled meanwhile are gone.
Result<uint32_t> Engine::take_oldest() {
  Run &run = run_at(0);
  first_run = (first_run + 1) % uint32_t(runs.size());
  --under_way;
  const Result<void> fetched = run.batch.fetch(executor);
  uint32_t drawn = 0, logit_row = 0;
  for (const auto &[id, logits] : run.awaited) {
    if (auto *s = const_cast<Sequence *>(find(id)); s && s->awaits) {
      s->awaits = false;
      if (fetched)
        drawn += advance(*s, run.batch, logits, logit_row);
      else
        end(*s, Finish::failed, fetched.error());
    }
    logit_row += logits;
  }
  collect();
  K31_TRY(fetched);
  return drawn;
}

Result<void> Engine::settle() {
  while (under_way)
    K31_TRY(take_oldest());
  return {};
}

// Goes on with a sequence after a run of which its last `logits` rows have logits, from row `logit_row` of the batch on; returns
// the tokens drawn.
uint32_t Engine::advance(Sequence &sequence, const Batch &batch, uint32_t logits, uint32_t logit_row) {
  const uint64_t first = sequence.done - logits; // position of the first row with logits
  for (uint32_t i = 0; i < logits; ++i) {
    if (batch.sampled(logit_row + i) < 0) {
      std::string reason = cat("the logits at position ", first + i, " are not finite");
      if (const auto where = executor.non_finite(place(sequence)); where && !where->empty())
        reason += cat(" and neither is its state (", *where, ")");
      fail_non_finite(sequence, std::move(reason));
      return 0;
    }
    if (sequence.request.on_logits && first + i == sequence.logits_given) {
      sequence.request.on_logits(first + i, batch.logits(logit_row + i));
      ++sequence.logits_given;
    }
  }
  if (options.check_state && steps % options.check_state == 0 && !finite(sequence))
    return 0;
  const std::vector<uint32_t> &boundaries = sequence.request.keep;
  if (std::find(boundaries.begin(), boundaries.end(), sequence.done) != boundaries.end())
    keep(sequence);
  if (sequence.ended || sequence.pending() || sequence.request.hold)
    return 0;
  if (sequence.drawn == sequence.request.max_tokens) {
    end(sequence, Finish::length);
    return 0;
  }
  draw(sequence, batch.sampled(logit_row + logits - 1));
  return 1;
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

void Engine::end(Sequence &sequence, Finish finish, std::optional<Error> error) {
  if (finish != Finish::failed)
    keep(sequence);
  if (sequence.ended) // the state to be kept was not finite
    return;
  release(sequence);
  sequence.ended = true;
  const auto drawn = sequence.tokens.begin() + int64_t(sequence.prompt);
  outputs.emplace(sequence.id, Output{{drawn, sequence.tokens.end()}, finish, std::move(error)});
}

// Ends the sequence alone; its memory is cleaned before anybody else gets it.
void Engine::fail_non_finite(Sequence &sequence, std::string reason) {
  ++counted.non_finite;
  release(sequence, true);
  end(sequence, Finish::failed, Error{Code::invalid_input, reason + "; this sequence was ended, others go on"});
}

void Engine::collect() {
  std::erase_if(running, [](const Owned &sequence) { return sequence->ended; });
}

Result<void> Engine::finish() {
  for (bool more = true; more;) {
    K31_ASSIGN(const StepReport report, step());
    more = report.ran;
  }
  return {};
}

} // namespace k31::engine
