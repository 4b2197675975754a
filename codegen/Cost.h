// How many tasks a launch is split into on the host. It depends on the op alone, never on the machine that compiles.
#pragma once
#include "dialects/Support/Notes.h"
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
  std::string reason;                         // with the numbers that were compared
  llvm::SmallVector<Candidate, 0> candidates; // numbers of tasks and their estimated times; empty: one was possible
  Work work = {};                             // what was split; zeros where nobody counted
};

// "7 tasks"
std::string tasksText(uint32_t tasks);

// The cheapest split. Each task needs `scratch` bytes, and all of them together stay within kWorkspaceLimit.
Split splitWork(Work work, uint64_t scratch = 0);

inline constexpr uint64_t kWorkspaceLimit = uint64_t(256) << 20;

} // namespace k31
