// Machine code of the host device: a shared object inside the plan, opened from memory.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace k31::host {

// One kernel: `args` points to one 8-byte pointer for each argument; it does share `task` of `tasks`.
using KernelFunction = void (*)(const void *args, uint32_t task, uint32_t tasks);

class Image {
public:
  static Result<Image> open(std::span<const uint8_t> code);
  Image(Image &&other) noexcept : fd(std::exchange(other.fd, -1)), handle(std::exchange(other.handle, nullptr)) {}
  Image &operator=(Image &&other) noexcept {
    std::swap(fd, other.fd), std::swap(handle, other.handle);
    return *this;
  }
  ~Image();

  Result<KernelFunction> find(const std::string &symbol) const;

private:
  Image() = default;
  int fd = -1; // stays open: the loader knows objects by path, and the path holds this number
  void *handle = nullptr;
};

} // namespace k31::host
