// States that outlive their sequences, for later ones that begin with the same tokens. A recurrent state cannot be cut, so one
// fits a sequence only when all of its tokens are the sequence's first ones.
#pragma once
#include "runtime/engine/block_manager.h"
#include <span>

namespace k31::engine {

struct KeptState {
  std::vector<int32_t> tokens; // all that are in the state
  BlockTable table;
  int32_t slot;
  uint64_t last_use;
};

class KeptStates {
public:
  explicit KeptStates(uint32_t most) : most(most) {}

  bool wanted() const { return most; }
  bool full() const { return states.size() >= most; }
  bool empty() const { return states.empty(); }
  const std::vector<KeptState> &all() const { return states; }

  // The longest one that leaves at least one of the tokens to run; null when none fits.
  KeptState *find(std::span<const int32_t> tokens);
  // True when a state of exactly these tokens is kept; it counts as used then.
  bool refresh(std::span<const int32_t> tokens, uint64_t now);
  void add(KeptState state) { states.push_back(std::move(state)); }
  // Removes the one that was not used for the longest time.
  KeptState take_oldest();

private:
  uint32_t most;
  std::vector<KeptState> states;
};

} // namespace k31::engine
