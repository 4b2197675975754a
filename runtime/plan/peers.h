// Collectives that a kernel on every rank does by itself (transport peer), and the areas in which they meet.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/schema/peers.h"
#include "runtime/schema/plan_generated.h"

namespace k31 {

// Does a kernel do it here? Not in a group of one. On a rank without the others only where it goes on with a row op: the area of
// each other rank is then its own, and the sum what it adds itself.
bool by_peer(const plan::Collective &collective, const comm::Communicator &ranks);

// Is a library needed for a collective of several ranks, on any rank of the plan?
bool needs_library(const plan::Plan &plan);

struct PeerArea {
  uint32_t arena;
  uint64_t offset, bytes;
  plan::MeshAxis axis;
};

// The areas of the plan, each once, in the same order on every rank. Refuses areas that overlap or serve two axes.
Result<std::vector<PeerArea>> peer_areas(const plan::Plan &plan);

// Refuses a group whose ranks are not on one host. All of them call it.
Result<void> on_one_host(comm::Group &group, plan::MeshAxis axis);

// What each rank of the group shows the others, in their order. All of them call it.
template <class T> Result<std::vector<T>> shown(comm::Group &group, const T &mine) {
  std::vector<T> all(group.size());
  K31_TRY(group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  return all;
}

} // namespace k31
