// An entry after Bind: what Run walks. No allocation, no lock, no formatting here.
#pragma once
#include "runtime/host/thread_pool.h"
#include "runtime/plan/port.h"
#include "runtime/schema/plan_generated.h"
#include <cstring>
#include <vector>

namespace k31 {

// A launch or a copy; events have no counterpart, because the host runs the commands in the order of the plan.
struct Step {
  host::KernelFunction function; // null: a copy
  const void *args;              // of a launch: its block of pointers; of a copy: the source
  void *dest;
  uint64_t bytes;
  uint32_t tasks;
  const plan::Launch *launch; // null: a copy
};

struct Program {
  std::vector<Step> steps;
  std::vector<const std::byte *> pointers; // argument blocks, one after the other
  std::vector<Port> inputs, outputs;
};

inline void execute(const Step &step, host::ThreadPool &pool) {
  if (step.function)
    pool.run(step.function, step.args, step.tasks);
  else
    memmove(step.dest, step.args, step.bytes);
}

inline void execute(const Program &program, host::ThreadPool &pool) {
  for (const Step &step : program.steps)
    execute(step, pool);
}

} // namespace k31
