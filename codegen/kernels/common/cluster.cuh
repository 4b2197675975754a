// A cluster: blocks of one launch that run at the same time, meet, and read each other's shared memory.
#pragma once
#include "codegen/kernels/common/mbarrier.cuh"

namespace k31::kernels {

// The block's place in its cluster.
K31_DEVICE int cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return (int)rank;
}

// All threads of the cluster's blocks meet; writes to shared memory from before are seen after it. In two steps: what stands
// between need not wait for the others.
K31_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
K31_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
K31_DEVICE void cluster_meet() { cluster_arrive(), cluster_wait(); }

// Writes a float to where block `rank` of the cluster has what this block has at `p`, and counts its 4 bytes in that block's
// barrier at `arrived`, whose wait shows it.
K31_DEVICE void store_to_block(float *p, Barrier *arrived, int rank, float value) {
  uint32_t at, barrier;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(p)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(shared_address(arrived)), "r"(rank));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(at), "f"(value), "r"(barrier)
               : "memory");
}

// The two floats that block `rank` of the cluster has where this block has `p`.
K31_DEVICE float2 load_from_block(const float2 *p, int rank) {
  uint32_t at;
  float2 v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(p)), "r"(rank));
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at) : "memory");
  return v;
}

} // namespace k31::kernels
