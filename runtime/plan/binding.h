// Bind for the host device: memory, code and argument blocks of a verified plan, ready to run.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/host/image.h"
#include "runtime/host/memory.h"
#include "runtime/plan/commands.h"
#include "runtime/schema/plan_generated.h"
#include <map>
#include <vector>

namespace k31 {

// Arenas of the plan, in its order.
Result<std::vector<host::Memory>> allocate_arenas(const plan::Plan &plan);

// Fills every arena but the weights with 0xFF: NaN in bf16 and f32, -1 in i32.
void poison_arenas(const plan::Plan &plan, const std::vector<host::Memory> &arenas);

// The plan's kernels, from the first image of each that this processor can run.
struct HostCode {
  std::map<uint32_t, host::Image> images;      // by index into Plan.images
  std::vector<host::KernelFunction> functions; // by index into Plan.kernels
};
Result<HostCode> load_code(const plan::Plan &plan);

// Every entry as prepared commands, dealt to so many threads; those of other pipeline stages are empty.
Result<std::vector<Program>> prepare(const plan::Plan &plan, const HostCode &code, const std::vector<host::Memory> &arenas,
                                     const comm::Communicator &communicator, int threads);

// Fills `alone`, once; large, and only observed runs need it.
void schedule_alone(Program &program, int threads);

} // namespace k31
