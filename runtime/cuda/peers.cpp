#include "runtime/cuda/peers.h"
#include "runtime/base/cat.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/peers.h"

namespace k31::cuda {

Result<std::unique_ptr<Peers>> Peers::connect(const Driver &driver, const plan::Plan &plan, std::span<const Memory> arenas,
                                              const comm::Communicator &ranks, Stream stream) {
  std::unique_ptr<Peers> made(new Peers(driver));
  if (ranks.size() == 1)
    return made;
  K31_ASSIGN(const std::vector<PeerArea> areas, peer_areas(plan));
  for (const PeerArea &area : areas) {
    comm::Group &group = ranks.group(area.axis);
    K31_TRY(on_one_host(group, area.axis));
    const Memory &arena = arenas[area.arena];
    struct Place {
      IpcHandle handle;
      uint64_t begin; // of the arena, from the begin of what the handle stands for
    } mine;
    K31_CUDA(driver, ipc_handle(&mine.handle, arena.allocation()), "memory of this GPU cannot be shown to other ranks");
    mine.begin = arena.address() - arena.allocation();
    K31_ASSIGN(const std::vector<Place> places, shown(group, mine));
    const std::vector<uint32_t> members = group_of(*plan.mesh(), area.axis, ranks.rank());
    plan::PeerTable table{};
    table.rank = int32_t(group.rank());
    for (uint32_t r = 0; r < group.size(); ++r) {
      Address base = arena.address();
      if (r != group.rank() && !ranks.world().alone()) {
        K31_ASSIGN(base, made->map(members[r], area.arena, places[r].handle));
        base += places[r].begin;
      }
      table.area[r] = base + area.offset;
    }
    K31_CUDA(driver, copy_in(arena.address() + area.offset, &table, sizeof table, stream), "cannot write the addresses of peers");
    K31_CUDA(driver, stream_synchronize(stream), "cannot write the addresses of peers");
  }
  if (!areas.empty())
    K31_TRY(ranks.all().all_gather({}, {})); // all tables stand
  return made;
}

Result<Address> Peers::map(uint32_t rank, uint32_t arena, const IpcHandle &handle) {
  for (const Mapped &known : maps)
    if (known.rank == rank && known.arena == arena)
      return known.base;
  Mapped next{rank, arena, 0};
  K31_CUDA(driver, ipc_open(&next.base, handle, kIpcPeerAccess),
           cat("the memory of the GPU of rank ", rank,
               " cannot be reached from this rank's, as collectives by peer need it; compile "
               "the plan with --transport library"));
  maps.push_back(next);
  return next.base;
}

Peers::~Peers() {
  for (const Mapped &one : maps)
    driver.ipc_close(one.base);
}

} // namespace k31::cuda
