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
  // The same of a file that other processes can map (runtime/host/peers.h), which ends with its last user.
  static Result<Memory> allocate_shared(const std::string &name, uint64_t bytes);
  Memory() = default;
  Memory(Memory &&other) noexcept
      : map(std::exchange(other.map, {})), used(std::exchange(other.used, {})), fd(std::exchange(other.fd, -1)) {}
  Memory &operator=(Memory &&other) noexcept {
    std::swap(map, other.map), std::swap(used, other.used), std::swap(fd, other.fd);
    return *this;
  }
  ~Memory();

  std::span<std::byte> bytes() const { return used; }
  int file() const { return fd; } // of shared memory

private:
  std::span<std::byte> map, used;
  int fd = -1;
};

// Bytes of memory that this process may use: the machine's, or less when a control group says so.
uint64_t memory_limit();

} // namespace k31::host
