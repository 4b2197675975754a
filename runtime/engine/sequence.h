// A sequence inside the engine: its tokens, and where its state is.
#pragma once
#include "runtime/engine/block_manager.h"
#include "runtime/engine/request.h"

namespace k31::engine {

// A boundary to which the sequence can go back: the slot is its state after the first `position` tokens. The rows of those
// positions stay in the sequence's own blocks, where only later positions are overwritten.
struct Mark {
  uint32_t position = 0;
  int32_t slot = -1; // -1: none
};

struct Sequence {
  SequenceId id = 0;
  Request request;             // its tokens have been moved to:
  std::vector<int32_t> tokens; // prompt, drawn, and given by extend()
  size_t prompt = 0;           // of the tokens
  uint32_t saved = 0;          // tokens of request.state
  uint32_t drawn = 0;          // tokens
  uint64_t logits_given = 0;   // positions
  uint64_t last_step = 0;
  bool ended = false;
  bool awaits = false; // the results of a run that is under way: it runs again once they are there
  bool asleep = false; // it rested, and its state was given up: it runs again only when there is something new to run

  // The state: the first `done` tokens, in `table` and `slot`.
  uint32_t done = 0;
  BlockTable table;
  int32_t slot = -1;        // -1 while done is 0
  int32_t next_slot = -1;   // taken for the next run's slot_out; -1: none yet
  int32_t wanted_slot = -1; // to be taken first; -1: any
  Mark mark;

  uint32_t pending() const { return asleep ? 0 : uint32_t(tokens.size()) - done; }
  bool rests() const { return !pending() && !awaits; }
  // Tokens before the next boundary whose state the request wants to be kept; what a run may take.
  uint32_t runnable() const {
    for (const uint32_t boundary : request.keep)
      if (boundary > done && boundary < tokens.size())
        return boundary - done;
    return pending();
  }
};

} // namespace k31::engine
