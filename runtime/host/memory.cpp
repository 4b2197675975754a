#include "runtime/host/memory.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

namespace k31::host {

static constexpr uint64_t kHugePage = 2u << 20;

Result<Memory> Memory::allocate(const std::string &name, uint64_t bytes, uint64_t alignment) {
  Memory memory;
  if (bytes == 0)
    return memory;
  // Large arenas start on a huge page, so that the kernel can use huge pages from the first byte on.
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t align = std::max(bytes >= kHugePage ? kHugePage : page, alignment);
  const uint64_t length = bytes + (align > page ? align : 0);
  void *at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    return system_error(cat("cannot allocate ", bytes, " bytes for arena ", quote(name)), errno);
  memory.map = {static_cast<std::byte *>(at), length};
  const uint64_t skip = (align - reinterpret_cast<uintptr_t>(at) % align) % align;
  memory.used = memory.map.subspan(skip, bytes);
  if (bytes >= kHugePage)
    madvise(memory.used.data(), bytes, MADV_HUGEPAGE); // advice: a refusal changes speed only
  return memory;
}

Result<Memory> Memory::allocate_shared(const std::string &name, uint64_t bytes) {
  Memory memory;
  if (bytes == 0)
    return memory;
  memory.fd = memfd_create("k31-shared", MFD_CLOEXEC);
  if (memory.fd < 0 || ::ftruncate(memory.fd, off_t(bytes)) != 0)
    return system_error(cat("cannot make a file of ", bytes, " bytes in memory for arena ", quote(name)), errno);
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
  if (at == MAP_FAILED)
    return system_error(cat("cannot allocate ", bytes, " bytes for arena ", quote(name)), errno);
  memory.map = memory.used = {static_cast<std::byte *>(at), bytes};
  return memory;
}

Memory::~Memory() {
  if (!map.empty())
    munmap(map.data(), map.size());
  if (fd >= 0)
    ::close(fd);
}

uint64_t memory_limit() {
  uint64_t limit = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream group("/sys/fs/cgroup/memory.max"); // holds "max" when there is no limit
  if (uint64_t value = 0; group >> value)
    limit = std::min(limit, value);
  return limit;
}

} // namespace k31::host
