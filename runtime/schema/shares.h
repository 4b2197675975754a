// What one rank of a mesh has of a plan: the arithmetic of axes and shares, in one place for compiler and runtime.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstdint>

namespace k31::plan {

// Hosts over which an expert group is spread evenly, `node` of its ranks on each; 1 when it is not.
inline uint32_t hosts_of_experts(const Mesh &mesh) {
  return mesh.node() > 1 && mesh.ep() > mesh.node() && mesh.ep() % mesh.node() == 0 ? mesh.ep() / mesh.node() : 1;
}

// Ranks along an axis; 1 for none.
inline uint32_t ranks_along(const Mesh &mesh, MeshAxis axis) {
  switch (axis) {
  case MeshAxis::tp:
    return mesh.tp();
  case MeshAxis::dp:
    return mesh.dp();
  case MeshAxis::ep:
    return mesh.ep();
  case MeshAxis::pp:
    return mesh.pp();
  case MeshAxis::edp: // an expert group that spans whole tp groups
    return mesh.tp() > 0 && mesh.ep() > mesh.tp() ? mesh.ep() / mesh.tp() : 1;
  case MeshAxis::node: // ranks of an expert group that share a host
    return hosts_of_experts(mesh) > 1 ? mesh.node() : 1;
  case MeshAxis::rail:
    return hosts_of_experts(mesh);
  default:
    return 1;
  }
}

// Whole units that each of `ranks` holds at most: coordinate c has [c * share, min(units, (c + 1) * share)).
inline uint64_t share_of(uint64_t units, uint64_t ranks) { return ranks > 1 ? (units + ranks - 1) / ranks : units; }

// Members of a stack for which a rank has a place.
inline uint32_t held_members(const Mesh &mesh, const WeightStack &stack) {
  const uint32_t members = stack.offsets()->size();
  const Shard *shard = stack.shard();
  return shard && shard->of() == ShardOf::members ? uint32_t(share_of(members, ranks_along(mesh, shard->axis()))) : members;
}

} // namespace k31::plan
