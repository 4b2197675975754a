// Weights from the checkpoint's files to the arenas, in the layout that the plan gives.
#pragma once
#include "runtime/base/result.h"
#include "runtime/host/memory.h"
#include "runtime/schema/plan_generated.h"
#include <functional>
#include <span>
#include <string>

namespace k31::weights {

// Called on the thread that called load(), now and then and at the end; bytes as they land in the arenas.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

// Reads with up to `threads` readers, straight into place where rows stay together, else through buffers of 64 MiB in all.
Result<void> load(const plan::Plan &plan, const std::string &folder, std::span<const host::Memory> arenas, int threads,
                  const Progress &progress);

} // namespace k31::weights
