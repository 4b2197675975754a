// Sizes of a plan's elements and tensors.
#pragma once
#include "runtime/schema/plan_generated.h"

namespace k31 {

// Bytes of one element.
inline uint64_t bytes_of(plan::DType type) { return type == plan::DType::bf16 ? 2 : type == plan::DType::u8 ? 1 : 4; }

// Bytes of an input or output; Load has checked that they fit 64 bits.
inline uint64_t bytes_of(const plan::Binding &binding) {
  uint64_t bytes = bytes_of(binding.dtype());
  for (uint64_t extent : *binding.shape())
    bytes *= extent;
  return bytes;
}

} // namespace k31
