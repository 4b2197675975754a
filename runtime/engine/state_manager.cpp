#include "runtime/engine/state_manager.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <cassert>

namespace k31::engine {

StateManager::StateManager(uint32_t slots) : used(slots, false), unused(slots) {}

Result<int32_t> StateManager::take(int32_t slot) {
  if (!unused)
    return fail(Code::out_of_memory, cat("all ", total(), " state slots are in use; compile with a larger --max-batch, or wait"));
  if (slot < 0)
    slot = int32_t(std::find(used.begin(), used.end(), false) - used.begin());
  if (uint32_t(slot) >= total())
    return fail(Code::invalid_input, cat("state slot ", slot, " of ", total()));
  if (used[size_t(slot)])
    return fail(Code::out_of_memory, cat("state slot ", slot, " is in use"));
  used[size_t(slot)] = true;
  --unused;
  return slot;
}

void StateManager::give(int32_t slot) {
  assert(used[size_t(slot)]);
  used[size_t(slot)] = false;
  ++unused;
}

} // namespace k31::engine
