// An entry after Bind: what Run walks. No allocation, no lock, no formatting here.
#pragma once
#include "runtime/host/schedule.h"
#include "runtime/plan/port.h"
#include "runtime/schema/plan_generated.h"
#include <vector>

namespace k31 {

// A launch or a copy; events have no counterpart, because the schedule follows from the bytes that steps touch.
struct Step {
  host::KernelFunction function; // null: a copy
  const void *args;              // of a launch: its block of pointers; of a copy: the source
  void *dest;
  uint64_t bytes;
  uint32_t tasks;
  const plan::Launch *launch; // null: a copy
};

struct Program {
  std::vector<Step> steps;                 // in the order of the plan
  std::vector<const std::byte *> pointers; // argument blocks, one after the other
  std::vector<Port> inputs, outputs;
  host::Schedule schedule;           // all steps
  std::vector<host::Schedule> alone; // each step on its own, for runs that are observed
};

} // namespace k31
