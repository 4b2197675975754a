// Memory of the host device: one anonymous map an arena, zero until written.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace k31::host {

class Memory {
public:
  // `alignment`: a power of two up to 2 MiB. `name` is for messages.
  static Result<Memory> allocate(const std::string &name, uint64_t bytes, uint64_t alignment);
  Memory() = default;
  Memory(Memory &&other) noexcept : map(std::exchange(other.map, {})), used(std::exchange(other.used, {})) {}
  Memory &operator=(Memory &&other) noexcept {
    std::swap(map, other.map), std::swap(used, other.used);
    return *this;
  }
  ~Memory();

  std::span<std::byte> bytes() const { return used; }

private:
  std::span<std::byte> map, used;
};

// Bytes of memory that this process may use: the machine's, or less when a control group says so.
uint64_t memory_limit();

} // namespace k31::host
