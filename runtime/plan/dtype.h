// Element types of a plan.
#pragma once
#include "runtime/schema/plan_generated.h"

namespace k31 {

// Bytes of one element.
inline uint64_t bytes_of(plan::DType type) { return type == plan::DType::bf16 ? 2 : type == plan::DType::u8 ? 1 : 4; }

} // namespace k31
