// Who owns which blocks and slots: admission, copies before writes, kept states, and what is given up when memory runs out.
#include "runtime/base/cat.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/state_image.h"
#include <algorithm>
#include <map>

namespace k31::engine {

// Moves waiting sequences to the running ones while there are slots, and blocks for all that they have now.
void Engine::admit() {
  uint32_t promised = 0; // blocks of those admitted in this step
  for (auto it = waiting.begin(); it != waiting.end();) {
    Sequence &sequence = **it;
    if (!sequence.pending() || (sequence.wanted_slot >= 0 && !state_pool.is_free(sequence.wanted_slot))) {
      ++it;
      continue;
    }
    if (block_pool.needed(sequence.tokens.size()) > block_pool.total()) { // it grew past the pool before it was preempted
      BlockTable none;
      end(sequence, Finish::failed, block_pool.grow(none, sequence.tokens.size()).error());
      it = waiting.erase(it);
      continue;
    }
    uint32_t need = 0;
    if (!room_for(sequence, promised, need))
      return; // in order of arrival: a short one does not overtake a long one for ever
    begin(sequence);
    if (!sequence.ended) {
      promised += need;
      const auto place =
          std::find_if(running.begin(), running.end(), [&](const Owned &other) { return other->id > sequence.id; });
      running.insert(place, std::move(*it));
    }
    it = waiting.erase(it);
  }
}

// True when a slot and the blocks are free; states that nobody runs are given up for that, if it helps. `need`: blocks.
bool Engine::room_for(const Sequence &sequence, uint32_t promised, uint32_t &need) {
  for (;;) {
    const KeptState *reused = sequence.request.on_logits || sequence.request.state ? nullptr : kept.find(sequence.tokens);
    need = block_pool.needed(sequence.tokens.size()) - (reused ? uint32_t(reused->tokens.size()) / model.block_tokens : 0);
    if (state_pool.available() && need + promised <= block_pool.available())
      return true;
    if (!idle_memory_holds(need + promised) || !release_idle())
      return false;
  }
}

Result<uint32_t> Engine::restore(Sequence &s) {
  K31_ASSIGN(const SavedState saved, check_state(executor.state(), *s.request.state, s.tokens));
  K31_TRY(block_pool.grow(s.table, saved.position));
  s.slot = std::exchange(s.next_slot, -1);
  s.done = saved.position;
  K31_TRY(executor.state().write(place(s), saved.caches));
  return saved.position;
}

// The first state of a sequence: a kept one, a saved one, or none.
void Engine::begin(Sequence &s) {
  s.next_slot = *state_pool.take(s.wanted_slot);
  if (s.request.state) {
    const auto restored = executor.agree_position(restore(s));
    if (!restored)
      end(s, Finish::failed, restored.error());
    return;
  }
  KeptState *reused = s.request.on_logits ? nullptr : kept.find(s.tokens);
  if (!reused)
    return;
  reused->last_use = steps;
  s.done = uint32_t(reused->tokens.size());
  s.table = block_pool.share(reused->table, uint32_t(reused->table.size()));
  s.table.reserve(model.table_blocks);
  s.slot = state_pool.share(reused->slot);
  ++counted.reuses;
  counted.reused_positions += s.done;
}

// Gives the sequence what the next `length` tokens write: blocks of its own from position `done` on, and a slot. What others own
// too is not written: the last block is copied, and another slot is taken.
Result<void> Engine::prepare(Sequence &s, uint32_t length) {
  if (s.done && block_pool.shared_tail(s.table, s.done)) {
    int32_t &tail = s.table[s.done / model.block_tokens];
    const int32_t old = tail;
    K31_TRY(executor.state().copy_block(old, block_pool.replace(tail)));
    ++counted.copied_blocks;
  }
  K31_TRY(block_pool.grow(s.table, s.done + length));
  if (s.slot >= 0 && state_pool.owners_of(s.slot) == 1) {
    state_pool.give(std::exchange(s.next_slot, -1), freed_slots);
    clean(false);
  } else if (s.next_slot < 0) {
    K31_ASSIGN(s.next_slot, state_pool.take());
  }
  return {};
}

// After the run: the slot that was written holds the state.
void Engine::commit(Sequence &s) {
  if (s.next_slot < 0)
    return;
  state_pool.give(s.slot, freed_slots);
  s.slot = std::exchange(s.next_slot, -1);
  clean(false);
}

// Keeps the state for later sequences. One that is not finite fails the sequence instead: it would fail all of them.
void Engine::keep(Sequence &s) {
  if (!kept.wanted() || !s.done || s.slot < 0)
    return;
  const std::span<const int32_t> tokens = std::span(s.tokens).first(s.done);
  if (kept.refresh(tokens, steps) || !finite(s))
    return;
  while (kept.full())
    release_kept(kept.take_oldest());
  kept.add(
      {{tokens.begin(), tokens.end()}, block_pool.share(s.table, block_pool.needed(s.done)), state_pool.share(s.slot), steps});
}

// Looks at the whole state; fails the sequence when it is not finite.
bool Engine::finite(Sequence &s) {
  const auto found = executor.non_finite(place(s));
  if (found && found->empty())
    return true;
  if (found)
    fail_non_finite(s, cat("its state at position ", s.done, " is not finite (", *found, ")"));
  else
    end(s, Finish::failed, found.error());
  return false;
}

// Back to the mark, or to the beginning.
void Engine::go_to_mark(Sequence &s) {
  const Mark to = s.mark;
  if (to.slot >= 0)
    state_pool.share(to.slot);
  state_pool.give(s.slot, freed_slots);
  s.slot = to.slot;
  s.done = to.position;
  block_pool.release(s.table, freed_blocks, block_pool.needed(to.position));
  clean(false);
}

// Nobody can run. Gives up one thing, that which costs least; the oldest sequence always goes on, so there is an end.
bool Engine::make_room() {
  if (release_idle())
    return true;
  for (size_t i = running.size(); i-- > 0;)
    if (running[i]->mark.slot >= 0) {
      drop_mark(*running[i]);
      return true;
    }
  const auto oldest = std::find_if(running.begin(), running.end(), [](const Owned &s) { return s->pending(); });
  if (oldest == running.end())
    return false;
  for (size_t i = running.size(); i-- > 0;)
    if (running[i] != *oldest) { // the youngest starts again from its tokens
      to_waiting(i);
      ++counted.preemptions;
      return true;
    }
  // Alone, and there is no room left.
  Sequence &s = **oldest;
  auto grown = block_pool.grow(s.table, s.done + 1);
  end(s, Finish::failed, grown ? Error{Code::internal, "no entry of the plan can run the sequence"} : std::move(grown.error()));
  collect();
  return true;
}

// True when the free blocks and those that only kept states and resting sequences own are at least `blocks`, and there is a slot.
bool Engine::idle_memory_holds(uint32_t blocks) const {
  std::map<int32_t, uint32_t> block_owners, slot_owners; // idle ones
  const auto count = [&](const BlockTable &table, int32_t slot) {
    for (const int32_t block : table)
      ++block_owners[block];
    if (slot >= 0)
      ++slot_owners[slot];
  };
  for (const KeptState &state : kept.all())
    count(state.table, state.slot);
  for (const Owned &s : running)
    if (s->rests()) {
      count(s->table, s->slot);
      if (s->mark.slot >= 0)
        ++slot_owners[s->mark.slot];
    }
  uint64_t free_blocks = block_pool.available(), free_slots = state_pool.available();
  for (const auto &[block, owners] : block_owners)
    free_blocks += owners == block_pool.owners_of(block);
  for (const auto &[slot, owners] : slot_owners)
    free_slots += owners == state_pool.owners_of(slot);
  return free_slots && free_blocks >= blocks;
}

// Gives up the kept state, or else the state of the resting sequence, that was not used for the longest time. A resting sequence
// runs again from its tokens when it is extended.
bool Engine::release_idle() {
  if (!kept.empty()) {
    release_kept(kept.take_oldest());
    return true;
  }
  Sequence *oldest = nullptr;
  for (const Owned &s : running)
    if (s->rests() && s->slot >= 0 && (!oldest || s->last_step < oldest->last_step))
      oldest = s.get();
  if (!oldest)
    return false;
  release(*oldest);
  oldest->asleep = true;
  return true;
}

// The sequence gives all its memory back and waits; it will run again from its tokens.
void Engine::to_waiting(size_t index) {
  Owned sequence = std::move(running[index]);
  running.erase(running.begin() + int64_t(index));
  release(*sequence);
  const auto place = std::find_if(waiting.begin(), waiting.end(), [&](const Owned &other) { return other->id > sequence->id; });
  waiting.insert(place, std::move(sequence));
}

void Engine::drop_mark(Sequence &s) {
  state_pool.give(std::exchange(s.mark, {}).slot, freed_slots);
  clean(false);
}

void Engine::release(Sequence &s, bool scrub) {
  block_pool.release(s.table, freed_blocks);
  state_pool.give(std::exchange(s.mark, {}).slot, freed_slots);
  state_pool.give(std::exchange(s.slot, -1), freed_slots);
  state_pool.give(std::exchange(s.next_slot, -1), freed_slots);
  s.done = 0;
  clean(scrub);
}

void Engine::release_kept(KeptState state) {
  block_pool.release(state.table, freed_blocks);
  state_pool.give(state.slot, freed_slots);
  clean(false);
}

void Engine::forget() {
  while (!kept.empty())
    release_kept(kept.take_oldest());
}

// What was freed, before anybody else gets it: zeros after a sequence that was not finite, poison in tests.
void Engine::clean(bool scrub) {
  if ((scrub || options.poison) && !broken)
    if (auto done = executor.state().fill(freed_blocks, freed_slots, std::byte(options.poison ? 0xff : 0)); !done)
      broken = done.error();
  freed_blocks.clear();
  freed_slots.clear();
}

} // namespace k31::engine
