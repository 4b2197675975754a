// An entry after Bind: what Run walks. No allocation, no lock, no formatting here.
#pragma once
#include "runtime/comm/group.h"
#include "runtime/host/schedule.h"
#include "runtime/plan/port.h"
#include "runtime/schema/plan_generated.h"
#include <vector>

namespace k31 {

// A launch, a copy or a collective; events have no counterpart, because the schedule follows from the bytes that steps touch.
struct Step {
  host::KernelFunction function; // null: a copy, or a collective by a library
  const void *args;              // of a kernel: its block of pointers; of others: the source
  void *dest;                    // of a collective by peer: its area
  uint64_t bytes;
  uint32_t tasks;
  const plan::Launch *launch; // null: a copy, or a collective that computes nothing but itself
  const plan::Collective *collective = nullptr;
  comm::Group *group = nullptr;  // of the collective
  const int32_t *live = nullptr; // its counts of live pieces
};

// Steps that threads run by themselves, and the collective behind them; null at the end of an entry.
struct Part {
  host::Schedule schedule;
  const Step *then;
};

struct Program {
  std::vector<Step> steps;                 // in the order of the plan
  std::vector<const std::byte *> pointers; // argument blocks, one after the other
  std::vector<Port> inputs, outputs;
  std::vector<Part> parts;           // all steps
  std::vector<host::Schedule> alone; // each step on its own, from the first observed run on; empty for collectives
};

} // namespace k31
