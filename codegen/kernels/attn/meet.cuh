// A barrier of some blocks of a launch. All of them must be on the device at once: the grid has at most one block a
// multiprocessor. The words stand in the kernel's module, zero when it is loaded, and come back to rest by themselves after each
// meeting.
#pragma once
#include "codegen/kernels/common/mbarrier.cuh"

namespace k31::kernels {

struct Meeting {
  uint32_t arrived, generation;
};

// The first `Threads` threads of `size` blocks (0: all threads). What they wrote before is visible after.
template <int Threads = 0> K31_DEVICE void meet(Meeting &m, int size) {
  auto block_meets = [] {
    if constexpr (Threads == 0)
      __syncthreads();
    else
      warps_meet(1, Threads);
  };
  block_meets();
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
  block_meets();
}

} // namespace k31::kernels
