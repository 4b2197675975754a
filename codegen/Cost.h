// How many tasks a launch is split into on the host. It depends on the op alone, never on the machine that compiles.
#pragma once
#include <cstdint>
#include <string>

namespace k31 {

// What an op does at the capacity of its bucket.
struct Work {
  uint64_t multiplyAdds;
  uint64_t bytes; // read and written, each once
  uint64_t units; // independent parts: more tasks than these would have nothing to do
};

struct Split {
  uint32_t tasks;
  std::string reason; // with the numbers that were compared
};

Split splitWork(Work work);

// As above, with scratch of `rowBytes` a task; all tasks together stay within kWorkspaceLimit.
Split splitWork(Work work, uint64_t rowBytes);

inline constexpr uint64_t kWorkspaceLimit = uint64_t(256) << 20;

} // namespace k31
