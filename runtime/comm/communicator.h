// The groups of a mesh that one rank belongs to: one an axis, and all ranks together.
#pragma once
#include "runtime/base/hash.h"
#include "runtime/comm/collectives.h"
#include "runtime/plan/mesh.h"
#include <array>

namespace k31::comm {

// Refuses a world of another size than the mesh, with both numbers.
Result<void> check_size(const World &world, const plan::Mesh &mesh);

class Communicator {
public:
  // Every rank of the world calls it. `plan`: what the file with the mesh hashes to; ranks with different files are refused.
  static Result<std::unique_ptr<Communicator>> make(World &world, const plan::Mesh &mesh, const Digest &plan = {});

  uint32_t rank() const { return world_group->rank(); }
  uint32_t size() const { return world_group->size(); }
  World &world() const { return *world_; }
  Group &all() const { return *world_group; }
  Group &group(plan::MeshAxis axis) const { return *groups[size_t(axis)]; }
  uint32_t coordinate(plan::MeshAxis axis) const { return group(axis).rank(); }

  // The input `coordinates` of entries: tp, dp, ep, pp, and zeros.
  const std::array<int32_t, 8> &coordinates() const { return coordinates_; }

private:
  explicit Communicator(World &world) : world_(&world) {}
  World *world_;
  std::unique_ptr<Group> world_group;
  std::array<std::unique_ptr<Group>, size_t(plan::MeshAxis::MAX) + 1> groups; // by axis; `none` is a group of one
  std::array<int32_t, 8> coordinates_{};
};

} // namespace k31::comm
