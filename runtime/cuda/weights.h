// Weights to device memory: files are read into two pinned buffers in turn, one fills while the other is copied.
#pragma once
#include "runtime/cuda/memory.h"
#include "runtime/weights/loader.h"
#include <span>

namespace k31::cuda {

// One sink a reader; `context` is made current on its thread.
Result<std::unique_ptr<weights::Sink>> make_sink(const Driver &driver, Context context, std::span<const Memory> arenas);

} // namespace k31::cuda
