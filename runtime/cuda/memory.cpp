#include "runtime/cuda/memory.h"
#include "runtime/base/cat.h"
#include <cstring>

namespace k31::cuda {

static constexpr uint64_t kDriverAlignment = 256; // of every allocation

Result<Memory> Memory::allocate(const Driver &driver, const std::string &name, uint64_t bytes, uint64_t alignment) {
  Memory memory;
  memory.driver = &driver;
  if (bytes == 0)
    return memory;
  const uint64_t extra = alignment > kDriverAlignment ? alignment : 0;
  K31_CUDA(driver, memory_allocate(&memory.base, bytes + extra),
           cat("cannot allocate ", bytes, " bytes of device memory for arena ", quote(name)));
  memory.size = bytes;
  memory.start = (memory.base + alignment - 1) / alignment * alignment;
  return memory;
}

Memory::~Memory() {
  if (base)
    driver->memory_free(base);
}

Result<Pinned> Pinned::allocate(const Driver &driver, uint64_t bytes) {
  Pinned pinned;
  pinned.driver = &driver;
  if (bytes == 0)
    return pinned;
  void *at = nullptr;
  K31_CUDA(driver, pinned_allocate(&at, bytes, 0), cat("cannot allocate ", bytes, " bytes of pinned host memory"));
  pinned.memory = {static_cast<std::byte *>(at), bytes};
  memset(at, 0, bytes);
  return pinned;
}

Pinned::~Pinned() {
  if (!memory.empty())
    driver->pinned_free(memory.data());
}

} // namespace k31::cuda
