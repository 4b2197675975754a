// Instructions that C++ has no name for: loads with cache hints, asynchronous copies, bf16 conversions. sm_90a.
#pragma once
#include "codegen/kernels/common/types.h"

#define K31_DEVICE __device__ __forceinline__

namespace k31::kernels {

// Dynamic shared memory of the block, aligned for a 128-byte swizzle of eight rows.
K31_DEVICE unsigned char *shared_memory() {
  extern __shared__ __align__(1024) unsigned char k31_shared[];
  return k31_shared;
}
K31_DEVICE uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// Lets the next launch of the stream start once all blocks of this one have started; it waits by itself.
K31_DEVICE void allow_next_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
// Waits until the launches before this one have ended and their writes are seen. Before it a kernel reads nothing but weights and
// writes nothing.
K31_DEVICE void wait_for_launches() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// 16 bytes that are read once: not kept in the first-level cache. The memory must not change during the launch.
K31_DEVICE uint4 load_streamed(const void *p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// 16 bytes that another GPU wrote: past the first-level cache.
K31_DEVICE uint4 load_past_l1(const void *p) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
// Flags between GPUs: what was written before the release is seen after an acquire that read it.
K31_DEVICE void release_system(uint64_t *at, uint64_t v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(v) : "memory");
}
K31_DEVICE uint64_t acquire_system(const uint64_t *at) {
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
  return v;
}

// 16 bytes from global to shared memory, past the first-level cache; `bytes` of 0 writes zeros and reads nothing.
K31_DEVICE void copy_async16(void *to, const void *from, int bytes = 16) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
               : "memory");
}
// The same for 4 bytes, through the first-level cache.
K31_DEVICE void copy_async4(void *to, const void *from, int bytes = 4) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
// Global memory into the second-level cache; 16-byte address and size.
K31_DEVICE void prefetch_to_l2(const void *from, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
K31_DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most N of this thread's newest groups are under way.
template <int N> K31_DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Orders this thread's earlier writes of shared memory before reads by the tensor cores (wgmma) that follow a barrier.
K31_DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Two floats as bf16, `low` in the lower half; round to nearest, ties to even.
K31_DEVICE uint32_t pack_bf16(float low, float high) {
  uint32_t v;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
}
K31_DEVICE uint16_t to_bf16(float v) { return (uint16_t)pack_bf16(v, 0.0f); }
K31_DEVICE float from_bf16(uint16_t v) { return __uint_as_float((uint32_t)v << 16); }
K31_DEVICE float bf16_low(uint32_t pair) { return __uint_as_float(pair << 16); }
K31_DEVICE float bf16_high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// Two floats as e4m3 codes, `low` in the lower byte; round to nearest, ties to even.
K31_DEVICE uint32_t pack_e4m3(float low, float high) {
  uint16_t v;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(v) : "f"(high), "f"(low));
  return v;
}

K31_DEVICE uint32_t subtract_bf16x2(uint32_t a, uint32_t b) {
  uint32_t v;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}

// The larger one; NaN when one is NaN.
K31_DEVICE float max_or_nan(float a, float b) {
  float v;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
  return v;
}

// Product of two pairs of bf16. Subnormal inputs count: PTX flushes none without .ftz.
K31_DEVICE uint32_t multiply_bf16x2(uint32_t a, uint32_t b) {
  uint32_t v;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}

} // namespace k31::kernels
