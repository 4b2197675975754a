// Which launches a plan's commands have.
#pragma once
#include "runtime/schema/plan_generated.h"

namespace k31::plan {

// Does the kernel of this collective by peer go on with a row op on the sum? It then has more arguments than source, live,
// destination and area.
inline bool has_row(const Collective &c) { return c.launch() && c.launch()->args()->size() > (c.live() ? 4u : 3u); }

// What command i of an entry computes: its launch, or that of a collective that goes on with a row op; else null.
inline const Launch *launch_of(const Entry &entry, uint32_t i) {
  if (entry.commands_type()->GetEnum<Command>(i) == Command::Launch)
    return entry.commands()->GetAs<Launch>(i);
  if (entry.commands_type()->GetEnum<Command>(i) == Command::Collective)
    if (const auto *c = entry.commands()->GetAs<Collective>(i); has_row(*c))
      return c->launch();
  return nullptr;
}

} // namespace k31::plan
