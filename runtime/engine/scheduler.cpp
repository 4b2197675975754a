#include "runtime/engine/scheduler.h"
#include <algorithm>
#include <tuple>

namespace k31::engine {
namespace {

// What is left of an entry while it is filled.
struct Room {
  uint32_t rows, segments, logit_rows, blocks, slots;
};

// Fewer rows of a prompt than these are not cut for the sake of pipeline stages: each part reads all dense weights again.
constexpr uint32_t kLeastPart = 256;

// The part of a candidate that fits; length 0 when nothing does.
ScheduledSegment part_of(const Candidate &c, const Room &room, uint32_t chunk, const ModelFacts &model) {
  if (!room.segments || room.slots < c.takes_slot)
    return {};
  uint32_t length = std::min(c.pending, room.rows);
  if (chunk)
    length = std::min(length, chunk);
  if (model.depth > 1)
    length = std::min(length, std::max((c.pending + model.depth - 1) / model.depth, kLeastPart));
  // A copied block takes one and adds none: without a free block nothing after `done` is the sequence's own.
  const uint64_t positions = (uint64_t(c.held) + room.blocks - c.copies_tail) * model.block_tokens;
  length = uint32_t(std::min<uint64_t>(length, positions - std::min<uint64_t>(positions, c.done)));
  if (c.all_logits) {
    length = std::min(length, room.logit_rows);
    return {c.index, length, length};
  }
  const bool last = c.sample && length == c.pending;
  if (last && !room.logit_rows)
    return {c.index, length - 1, 0}; // all but the row that needs logits
  return {c.index, length, last ? 1u : 0u};
}

bool multi_row(const Work &work) {
  return std::any_of(work.segments.begin(), work.segments.end(), [](const ScheduledSegment &s) { return s.length > 1; });
}

} // namespace

Scheduler::Scheduler(const ModelFacts &model, uint32_t chunk) : model(model), chunk(chunk) {
  for (const EntryFacts &entry : model.entries)
    trial.segments.reserve(entry.segments);
  decodes.reserve(model.slots);
  prompts.reserve(model.slots);
}

void Scheduler::fill(const EntryFacts &entry, Work &work) const {
  work.rows = work.logit_rows = 0;
  work.segments.clear();
  Room room{entry.rows, entry.segments, entry.logit_rows, free_blocks, free_slots};
  const auto place = [&](const Candidate &c) {
    const ScheduledSegment part = part_of(c, room, chunk, model);
    if (!part.length)
      return;
    const uint32_t blocks = uint32_t((uint64_t(c.done) + part.length + model.block_tokens - 1) / model.block_tokens);
    room.rows -= part.length;
    room.segments -= 1;
    room.logit_rows -= part.logits;
    room.blocks -= (blocks > c.held ? blocks - c.held : 0) + c.copies_tail;
    room.slots -= c.takes_slot;
    work.rows += part.length;
    work.logit_rows += part.logits;
    work.segments.push_back(part);
  };
  // Neither kind starves: while a prompt waits it gets a segment and a row, and in an entry for one sequence they take turns.
  size_t most = std::min(entry.rows, entry.segments);
  if (!prompts.empty() && !decodes.empty())
    most = most > 1 ? most - 1 : decodes[0].last_step <= prompts[0].last_step;
  most = std::min(most, most_decodes);
  for (const Candidate &c : decodes)
    if (work.segments.size() < most)
      place(c);
  for (const Candidate &c : prompts)
    place(c);
}

bool Scheduler::best_of(bool decode, Work &work) {
  // More rows are better; then the smaller entry, which costs less.
  const auto cost = [&](const Work &w) {
    const EntryFacts &entry = model.entries[w.entry];
    return std::tuple(-int64_t(w.rows), entry.rows, entry.segments, entry.logit_rows);
  };
  bool found = false;
  for (uint32_t i = 0; i < model.entries.size(); ++i) {
    if (model.entries[i].decode != decode)
      continue;
    trial.entry = i;
    fill(model.entries[i], trial);
    if (trial.rows && (!found || cost(trial) < cost(work))) {
      std::swap(trial, work);
      found = true;
    }
  }
  return found;
}

void Scheduler::sort(std::span<const Candidate> candidates, uint32_t blocks, uint32_t slots, uint32_t awaiting) {
  free_blocks = blocks, free_slots = slots;
  decodes.clear();
  prompts.clear();
  for (const Candidate &c : candidates)
    (c.pending == 1 ? decodes : prompts).push_back(c);
  most_decodes = (decodes.size() + awaiting + model.depth - 1) / model.depth;
  std::sort(decodes.begin(), decodes.end(), [](const Candidate &a, const Candidate &b) {
    return std::tie(a.last_step, a.index) < std::tie(b.last_step, b.index);
  });
}

void Scheduler::fit(std::span<const Candidate> candidates, uint32_t blocks, uint32_t slots, uint32_t entry, Work &work,
                    uint32_t awaiting) {
  sort(candidates, blocks, slots, awaiting);
  work.entry = entry;
  fill(model.entries[entry], work);
}

bool Scheduler::choose(std::span<const Candidate> candidates, uint32_t blocks, uint32_t slots, Work &work, uint32_t awaiting) {
  sort(candidates, blocks, slots, awaiting);
  if (!prompts.empty() && best_of(false, work) && multi_row(work))
    return true;
  return best_of(true, work) || best_of(false, work);
}

} // namespace k31::engine
