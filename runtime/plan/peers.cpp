#include "runtime/plan/peers.h"
#include "runtime/base/cat.h"
#include "runtime/plan/check.h"
#include "runtime/schema/launches.h"
#include <algorithm>
#include <unistd.h>

namespace k31 {

static bool peers(const plan::Plan &plan, const plan::Collective &c) {
  return c.transport() == plan::Transport::peer && plan::ranks_along(*plan.mesh(), c.axis()) > 1;
}

template <class Visit> static void each_collective(const plan::Plan &plan, Visit &&visit) {
  for (const plan::Entry *entry : *plan.entries())
    for (uint32_t i = 0; i < entry->commands()->size(); ++i)
      if (entry->commands_type()->GetEnum<plan::Command>(i) == plan::Command::Collective)
        visit(*entry->commands()->GetAs<plan::Collective>(i));
}

bool by_peer(const plan::Collective &c, const comm::Communicator &ranks) {
  return c.transport() == plan::Transport::peer && ranks.group(c.axis()).size() > 1 &&
         (!ranks.world().alone() || plan::has_row(c));
}

bool needs_library(const plan::Plan &plan) {
  bool needed = false;
  each_collective(plan, [&](const plan::Collective &c) {
    needed |= c.transport() == plan::Transport::library && plan::ranks_along(*plan.mesh(), c.axis()) > 1;
  });
  return needed;
}

Result<std::vector<PeerArea>> peer_areas(const plan::Plan &plan) {
  std::vector<PeerArea> areas;
  bool clear = true;
  each_collective(plan, [&](const plan::Collective &c) {
    if (!peers(plan, c))
      return;
    const plan::Slice &at = *c.launch()->args()->Get(c.launch()->args()->size() - 1); // checked at Load
    const PeerArea area{at.arena(), at.offset(), at.bytes(), c.axis()};
    const auto crosses = [&](const PeerArea &other) {
      return other.arena == area.arena && other.offset < area.offset + area.bytes && area.offset < other.offset + other.bytes;
    };
    const auto known = std::find_if(areas.begin(), areas.end(), crosses);
    if (known == areas.end())
      areas.push_back(area);
    else
      clear &= known->offset == area.offset && known->bytes == area.bytes && known->axis == area.axis;
  });
  if (!clear)
    return check::refuse("collectives of different axes share memory of an arena of kind shared");
  std::sort(areas.begin(), areas.end(), [](const PeerArea &a, const PeerArea &b) { return a.axis < b.axis; });
  return areas;
}

Result<void> on_one_host(comm::Group &group, plan::MeshAxis axis) {
  struct Name {
    char text[64] = {};
  } mine;
  ::gethostname(mine.text, sizeof mine.text - 1);
  K31_ASSIGN(const std::vector<Name> all, shown(group, mine));
  for (uint32_t r = 0; r < group.size(); ++r)
    if (std::string_view(all[r].text) != mine.text)
      return fail(Code::unsupported,
                  cat("the plan's collectives over ", plan::EnumNameMeshAxis(axis), " go by peer, but rank ", r,
                      " of it is on host ", quote(all[r].text), " and rank ", group.rank(), " on ", quote(mine.text),
                      "; start the ranks as the mesh's node says, or compile with --transport library"));
  return {};
}

} // namespace k31
