#include "runtime/engine/kept_states.h"
#include <algorithm>

namespace k31::engine {

KeptState *KeptStates::find(std::span<const int32_t> tokens) {
  KeptState *best = nullptr;
  for (KeptState &state : states)
    if (state.tokens.size() < tokens.size() && (!best || state.tokens.size() > best->tokens.size()) &&
        std::equal(state.tokens.begin(), state.tokens.end(), tokens.begin()))
      best = &state;
  return best;
}

bool KeptStates::refresh(std::span<const int32_t> tokens, uint64_t now) {
  for (KeptState &state : states)
    if (std::equal(state.tokens.begin(), state.tokens.end(), tokens.begin(), tokens.end())) {
      state.last_use = now;
      return true;
    }
  return false;
}

KeptState KeptStates::take_oldest() {
  const auto oldest = std::min_element(states.begin(), states.end(),
                                       [](const KeptState &a, const KeptState &b) { return a.last_use < b.last_use; });
  KeptState state = std::move(*oldest);
  states.erase(oldest);
  return state;
}

} // namespace k31::engine
