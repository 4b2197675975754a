// A barrier of some blocks of a launch. All of them must be on the device at once: the grid has at most one block a
// multiprocessor. The words stand in the kernel's module, zero when it is loaded, and come back to rest by themselves after each
// meeting.
#pragma once
#include "codegen/kernels/common/ptx.cuh"

namespace k31::kernels {

struct Meeting {
  uint32_t arrived, generation;
};

// All threads of `size` blocks. What they wrote before is visible after.
K31_DEVICE void meet(Meeting &m, int size) {
  __syncthreads();
  if (size > 1 && threadIdx.x == 0) {
    volatile uint32_t *generation = &m.generation;
    const uint32_t mine = *generation;
    __threadfence();
    if (atomicAdd(&m.arrived, 1u) == (uint32_t)size - 1) {
      atomicExch(&m.arrived, 0u);
      __threadfence();
      atomicAdd(&m.generation, 1u);
    } else {
      while (*generation == mine)
        __nanosleep(32);
    }
    __threadfence();
  }
  __syncthreads();
}

} // namespace k31::kernels
