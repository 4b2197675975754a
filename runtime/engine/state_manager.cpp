#include "runtime/engine/state_manager.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <cassert>

namespace k31::engine {

StateManager::StateManager(uint32_t slots) : owners(slots, 0), unused(slots) {}

Result<int32_t> StateManager::take(int32_t slot) {
  if (!unused)
    return fail(Code::out_of_memory, cat("all ", total(), " state slots are in use; compile with a larger --max-batch, or wait"));
  if (slot < 0)
    slot = int32_t(std::find(owners.begin(), owners.end(), 0u) - owners.begin());
  if (uint32_t(slot) >= total())
    return fail(Code::invalid_input, cat("state slot ", slot, " of ", total()));
  if (!is_free(slot))
    return fail(Code::out_of_memory, cat("state slot ", slot, " is in use"));
  owners[size_t(slot)] = 1;
  --unused;
  return slot;
}

int32_t StateManager::share(int32_t slot) {
  assert(!is_free(slot));
  ++owners[size_t(slot)];
  return slot;
}

void StateManager::give(int32_t slot, std::vector<int32_t> &freed) {
  if (slot < 0)
    return;
  assert(!is_free(slot));
  if (--owners[size_t(slot)])
    return;
  ++unused;
  freed.push_back(slot);
}

} // namespace k31::engine
