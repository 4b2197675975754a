// Machine code of the host device: a shared object inside the plan, copied to memory of its own.
//
// An image needs nothing from outside: no library, no relocation, no constructor. So we map it ourselves, and what we do not read
// (dynamic section, hash table) cannot do harm. What we read is checked against the rest first: a damaged image is an error.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace k31::host {

// One kernel: `args` points to one 8-byte pointer for each argument; it does share `task` of `tasks`.
using KernelFunction = void (*)(const void *args, uint32_t task, uint32_t tasks);

class Image {
public:
  static Result<Image> open(std::span<const uint8_t> code);
  Image(Image &&other) noexcept : map(std::exchange(other.map, {})), symbols(std::move(other.symbols)) {}
  Image &operator=(Image &&other) noexcept {
    std::swap(map, other.map), std::swap(symbols, other.symbols);
    return *this;
  }
  ~Image();

  Result<KernelFunction> find(const std::string &symbol) const;

private:
  Image() = default;
  std::span<uint8_t> map;
  std::unordered_map<std::string, uint64_t> symbols; // offset in the map
};

} // namespace k31::host
