// The launch grid of a CUDA kernel: plain numbers that the compiler computes.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels {

struct Grid {
  int32_t x = 1, y = 1, z = 1;
};

} // namespace k31::kernels
