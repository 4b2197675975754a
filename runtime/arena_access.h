// Bytes of a plan's arenas, from the host: how states are saved, restored, copied and cleared on any device. Between runs, and
// from observers of one.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <span>

namespace k31 {

class ArenaAccess {
public:
  virtual ~ArenaAccess() = default;
  // Each refuses a range that is not inside the arena.
  virtual Result<void> read(uint32_t arena, uint64_t offset, std::span<std::byte> to) = 0;
  virtual Result<void> write(uint32_t arena, uint64_t offset, std::span<const std::byte> from) = 0;
  // Inside one arena; the two ranges do not overlap.
  virtual Result<void> copy(uint32_t arena, uint64_t from, uint64_t to, uint64_t bytes) = 0;
  virtual Result<void> fill(uint32_t arena, uint64_t offset, uint64_t bytes, std::byte value) = 0;
};

// An internal error unless `bytes` bytes from `offset` on are inside an arena of `size` bytes.
Result<void> check_range(uint32_t arena, uint64_t offset, uint64_t bytes, uint64_t size);

} // namespace k31
