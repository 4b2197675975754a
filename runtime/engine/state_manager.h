// Slots of the recurrent state (KDA matrices and convolution windows). A slot holds the state of one boundary and may have
// several owners: it is written only by a run whose sequence owns it alone, otherwise the run writes another slot.
#pragma once
#include "runtime/base/result.h"
#include <cstdint>
#include <vector>

namespace k31::engine {

class StateManager {
public:
  explicit StateManager(uint32_t slots);

  uint32_t total() const { return uint32_t(owners.size()); }
  uint32_t available() const { return unused; }
  uint32_t owners_of(int32_t slot) const { return owners[size_t(slot)]; }
  bool is_free(int32_t slot) const { return !owners_of(slot); }

  // Takes the given slot, or the lowest free one for -1.
  Result<int32_t> take(int32_t slot = -1);
  // One owner more.
  int32_t share(int32_t slot);
  // One owner less; the last one frees it, and it is added to `freed`. -1 is no slot.
  void give(int32_t slot, std::vector<int32_t> &freed);

private:
  std::vector<uint32_t> owners; // of each slot
  uint32_t unused;
};

} // namespace k31::engine
