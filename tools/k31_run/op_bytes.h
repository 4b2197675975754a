// Bytes that a launch has to move, from the sizes of its arguments and what of them is live: the least traffic that a kernel
// without reuse across launches can have.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstddef>
#include <span>

namespace k31::run {

// The run that a launch belongs to.
struct Live {
  uint32_t rows = 0, segments = 0, logit_rows = 0;
  uint32_t start = 0; // position of the first token of each segment; segments are of equal length
};

uint64_t bytes_moved(const plan::Plan &plan, const plan::Entry &entry, const plan::Launch &launch,
                     std::span<const std::span<const std::byte>> args, const Live &live);

} // namespace k31::run
