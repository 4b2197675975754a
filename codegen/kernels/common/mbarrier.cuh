// Barriers in shared memory (mbarrier): a phase ends when all arrivals and all announced bytes of asynchronous copies are there.
// A phase has a parity; waiting for parity p returns once the phase of that parity has ended. A fresh barrier is in phase 0, so
// waiting for parity 1 returns at once.
#pragma once
#include "codegen/kernels/common/ptx.cuh"

namespace k31::kernels {

using Barrier = uint64_t;

K31_DEVICE void barrier_init(Barrier *b, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals) : "memory");
}
// After the inits of one thread, before a barrier of the block that shows them to the others and to the copy engine.
K31_DEVICE void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

K31_DEVICE void barrier_arrive(Barrier *b) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
// One arrival, and `bytes` that copies will bring in this phase.
K31_DEVICE void barrier_expect(Barrier *b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}
// One arrival once all earlier cp.async of this thread are done.
K31_DEVICE void barrier_arrive_after_copies(Barrier *b) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(b)) : "memory");
}
K31_DEVICE void barrier_wait(Barrier *b, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@done bra end;\nbra again;\n"
               "end:\n}\n" ::"r"(shared_address(b)),
               "r"(parity)
               : "memory");
}

// A barrier of some warps of the block: `threads` of them meet at number `id` (1 to 15; 0 is __syncthreads).
K31_DEVICE void warps_meet(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

} // namespace k31::kernels
