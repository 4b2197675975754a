// Ranks of a plan's mesh: the place of each on every axis, and who shares a group with it.
//
// rank = (p dp + d) tp + t. The ranks of a stage, s = d tp + t, form groups of ep that each hold all experts once. When ep > tp
// such a group spans several dp groups: `edp` is the axis over these, ranks of one expert group with equal t. When it spans
// hosts, `node` is the axis over its ranks on one host, and `rail` the axis over the ranks at the same place of each.
#pragma once
#include "runtime/schema/shares.h"
#include <vector>

namespace k31 {

inline uint32_t world_size(const plan::Mesh &mesh) { return mesh.tp() * mesh.dp() * mesh.pp(); }
inline uint32_t stage_size(const plan::Mesh &mesh) { return mesh.tp() * mesh.dp(); }

// Ranks fill hosts in their order.
inline uint32_t host_of(const plan::Mesh &mesh, uint32_t rank) { return mesh.node() > 0 ? rank / mesh.node() : 0; }

// Distance in ranks between neighbours of a group; a group's first rank is a multiple of stride times extent above a number
// below the stride.
inline uint32_t stride(const plan::Mesh &mesh, plan::MeshAxis axis) {
  switch (axis) {
  case plan::MeshAxis::dp:
  case plan::MeshAxis::edp:
    return mesh.tp();
  case plan::MeshAxis::pp:
    return stage_size(mesh);
  case plan::MeshAxis::rail:
    return mesh.node();
  default:
    return 1;
  }
}

inline uint32_t coordinate(const plan::Mesh &mesh, plan::MeshAxis axis, uint32_t rank) {
  return rank / stride(mesh, axis) % plan::ranks_along(mesh, axis);
}

// Ranks of the group that `rank` belongs to, in the order of their coordinates.
inline std::vector<uint32_t> group_of(const plan::Mesh &mesh, plan::MeshAxis axis, uint32_t rank) {
  const uint32_t step = stride(mesh, axis);
  std::vector<uint32_t> ranks(plan::ranks_along(mesh, axis));
  for (uint32_t i = 0; i < ranks.size(); ++i)
    ranks[i] = rank - coordinate(mesh, axis, rank) * step + i * step;
  return ranks;
}

} // namespace k31
