// Slots of the recurrent state (KDA matrices and convolution windows): one for each sequence that runs.
#pragma once
#include "runtime/base/result.h"
#include <cstdint>
#include <vector>

namespace k31::engine {

class StateManager {
public:
  explicit StateManager(uint32_t slots);

  uint32_t total() const { return uint32_t(used.size()); }
  uint32_t available() const { return unused; }
  bool is_free(int32_t slot) const { return !used[size_t(slot)]; }

  // Takes the given slot, or the lowest free one for -1.
  Result<int32_t> take(int32_t slot = -1);
  void give(int32_t slot);

private:
  std::vector<bool> used;
  uint32_t unused;
};

} // namespace k31::engine
