#include "runtime/comm/communicator.h"
#include "runtime/base/cat.h"
#include "runtime/comm/alone.h"
#include <numeric>

namespace k31::comm {

Result<void> check_size(const World &world, const plan::Mesh &mesh) {
  const uint32_t ranks = world_size(mesh);
  if (world.size() != ranks)
    return fail(Code::invalid_input,
                cat("the plan is for ", ranks, ranks == 1 ? " rank" : " ranks", " (tp=", mesh.tp(), ",dp=", mesh.dp(),
                    ",pp=", mesh.pp(), "), but ", world.size(), world.size() == 1 ? " process was" : " processes were",
                    " started; start ", ranks, ", or compile the plan for a mesh of ", world.size()));
  return {};
}

// All ranks give the same reason.
static Result<void> check_plans(Group &all, const Digest &mine) {
  std::vector<Digest> plans(all.size());
  K31_TRY(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(plans))));
  for (uint32_t r = 1; r < plans.size(); ++r)
    if (plans[r] != plans[0])
      return fail(Code::invalid_input, cat("rank ", r, " has a plan file with hash ", hex(plans[r]), ", rank 0 one with ",
                                           hex(plans[0]), "; start all ranks with the same plan, copied to every host"));
  return {};
}

Result<std::unique_ptr<Communicator>> Communicator::make(World &world, const plan::Mesh &mesh, const Digest &plan) {
  K31_TRY(check_size(world, mesh));
  std::unique_ptr<Communicator> made(new Communicator(world));
  std::vector<uint32_t> everybody(world.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  K31_ASSIGN(made->world_group, world.group(everybody, world.rank()));
  K31_TRY(check_plans(*made->world_group, plan)); // before groups that another mesh does not have
  for (const plan::MeshAxis axis : plan::EnumValuesMeshAxis()) {
    std::unique_ptr<Group> &group = made->groups[size_t(axis)];
    if (plan::ranks_along(mesh, axis) == 1) {
      group = std::make_unique<AloneGroup>(0, 1);
    } else {
      std::vector<uint32_t> members = group_of(mesh, axis, world.rank());
      K31_ASSIGN(group, world.group(members, k31::coordinate(mesh, axis, world.rank())));
      for (uint32_t &member : members)
        member = host_of(mesh, member);
      group->place_on(std::move(members));
    }
  }
  constexpr plan::MeshAxis order[] = {plan::MeshAxis::tp, plan::MeshAxis::dp, plan::MeshAxis::ep, plan::MeshAxis::pp};
  for (size_t i = 0; i < std::size(order); ++i)
    made->coordinates_[i] = int32_t(made->coordinate(order[i]));
  return made;
}

} // namespace k31::comm
