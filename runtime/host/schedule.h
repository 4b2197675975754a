// Who does what in an entry: its launches as items, dealt to one lane a thread, in groups.
//
// Launches that touch no byte in common, one of them writing, stand in one group and run at once; the next group starts when all
// of them are done. So a barrier is paid for each step of the longest chain of results, not for each launch.
#pragma once
#include "runtime/host/image.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace k31::host {

// Bytes that a launch touches.
struct Touch {
  const std::byte *begin, *end;
  bool writes;
};

// A launch as the plan has it: `tasks` is the number of parts that are each worth a thread.
struct Job {
  KernelFunction function;
  const void *args;
  uint32_t tasks;
  std::vector<Touch> touches;
};

// A call of one kernel. What a launch computes does not depend on the number of its parts.
struct Item {
  KernelFunction function;
  const void *args;
  uint32_t task, tasks;
  uint32_t group;
};

struct Schedule {
  struct Lane {
    std::vector<Item> items;   // group by group
    std::vector<uint32_t> end; // end[g]: items of groups 0 .. g
  };
  std::vector<Lane> lanes; // one a thread
  uint32_t groups = 0;
};

// `jobs` are in an order in which they may run one after the other.
Schedule make_schedule(std::span<const Job> jobs, int threads);

} // namespace k31::host
