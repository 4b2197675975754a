// Chooses the work of one step: an entry of the plan and the segments that run in it. It knows numbers, not sequences.
#pragma once
#include "runtime/engine/executor.h"

namespace k31::engine {

// A sequence that could run.
struct Candidate {
  uint32_t index = 0;       // of the caller
  uint32_t done = 0;        // positions in the cache
  uint32_t pending = 0;     // tokens that are not and may run next; 1 while decoding
  uint32_t held = 0;        // blocks that it owns
  bool all_logits = false;  // every row needs logits
  bool sample = false;      // the last row needs logits
  uint64_t last_step = 0;   // when it ran before
  bool copies_tail = false; // a run copies its last block first
  bool takes_slot = false;  // a run takes a slot
};

struct ScheduledSegment {
  uint32_t index = 0;  // as in Candidate
  uint32_t length = 0; // tokens
  uint32_t logits = 0; // rows with logits, the last ones of the segment
};

struct Work {
  uint32_t entry = 0;
  uint32_t rows = 0;
  uint32_t logit_rows = 0;
  std::vector<ScheduledSegment> segments;
};

class Scheduler {
public:
  // chunk: most tokens of one sequence in one step; 0: what the entry holds.
  Scheduler(const ModelFacts &model, uint32_t chunk);

  // `candidates` in order of arrival. False when none of them can run with the blocks and slots that are free. `awaiting`:
  // sequences whose next token is being drawn; when `depth` runs may be under way, decoding ones are shared out among as many.
  //
  // Decoding sequences go first (the one that waited longest leads); prompts share the rest of the rows, in order of arrival. A
  // step with a prompt runs in a prefill entry, others in a decode entry, if the plan has them: the entry that takes the most
  // rows, and of those the smallest.
  bool choose(std::span<const Candidate> candidates, uint32_t free_blocks, uint32_t free_slots, Work &work,
              uint32_t awaiting = 0);

  // The same for a given entry, which need not take what is best, nor anything.
  void fit(std::span<const Candidate> candidates, uint32_t free_blocks, uint32_t free_slots, uint32_t entry, Work &work,
           uint32_t awaiting = 0);

private:
  void sort(std::span<const Candidate> candidates, uint32_t free_blocks, uint32_t free_slots, uint32_t awaiting);
  void fill(const EntryFacts &entry, Work &work) const;
  bool best_of(bool decode, Work &work);

  const ModelFacts &model;
  uint32_t chunk;
  std::vector<Candidate> decodes, prompts;
  uint32_t free_blocks = 0, free_slots = 0;
  size_t most_decodes = 0; // of one run
  Work trial;
};

} // namespace k31::engine
