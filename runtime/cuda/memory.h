// Memory of a GPU and pinned memory of the host, each freed with its owner.
#pragma once
#include "runtime/cuda/driver.h"
#include <span>
#include <utility>

namespace k31::cuda {

class Memory {
public:
  Memory() = default;
  // `alignment`: a power of two. `name` is for messages.
  static Result<Memory> allocate(const Driver &driver, const std::string &name, uint64_t bytes, uint64_t alignment);
  Memory(Memory &&other) noexcept
      : driver(other.driver), base(std::exchange(other.base, 0)), start(other.start), size(std::exchange(other.size, 0)) {}
  Memory &operator=(Memory &&other) noexcept {
    std::swap(driver, other.driver), std::swap(base, other.base), std::swap(start, other.start), std::swap(size, other.size);
    return *this;
  }
  ~Memory();

  Address address() const { return start; }
  Address allocation() const { return base; } // as the driver knows it, at or before the address
  uint64_t bytes() const { return size; }

private:
  const Driver *driver = nullptr;
  Address base = 0, start = 0; // as the driver gave it; aligned
  uint64_t size = 0;
};

// Zero when it is made.
class Pinned {
public:
  Pinned() = default;
  static Result<Pinned> allocate(const Driver &driver, uint64_t bytes);
  Pinned(Pinned &&other) noexcept : driver(other.driver), memory(std::exchange(other.memory, {})) {}
  Pinned &operator=(Pinned &&other) noexcept {
    std::swap(driver, other.driver), std::swap(memory, other.memory);
    return *this;
  }
  ~Pinned();

  std::span<std::byte> bytes() const { return memory; }

private:
  const Driver *driver = nullptr;
  std::span<std::byte> memory;
};

} // namespace k31::cuda
