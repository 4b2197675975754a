// A saved state: one sequence at one boundary, whole. What restores it checks that it belongs to the plan and to the tokens, so
// that a state is never used in part, nor where another one belongs.
//
// | bytes | content (integers little endian)                                     |
// |-------|----------------------------------------------------------------------|
// | 8     | "K31STATE"                                                           |
// | 4, 4  | version, length of the plan's digest                                 |
// | 8, 8  | position, length of the caches                                       |
// | 16    | XXH3-128 over the layout: block size, and kind, layer and unit bytes of each member |
// | 16    | XXH3-128 over the first `position` tokens                            |
// | n     | the plan's digest                                                    |
// | m     | the caches, as StateMemory::read gives them                          |
// | 16    | XXH3-128 of all bytes before                                         |
#pragma once
#include "runtime/engine/state_memory.h"

namespace k31::engine {

// Saves the state of the sequence with these tokens; place.position of them are in it. Refuses one that is not finite, of which
// `non_finite` names a cache.
Result<std::vector<std::byte>> save_state(StateMemory &memory, const StatePlace &place, std::span<const int32_t> tokens,
                                          const std::string &non_finite);

struct SavedState {
  uint32_t position = 0;
  std::span<const std::byte> caches; // points into the image
};

// Checks an image against the plan and the tokens of the sequence that shall go on from it.
Result<SavedState> check_state(const StateMemory &memory, std::span<const std::byte> image, std::span<const int32_t> tokens);

} // namespace k31::engine
