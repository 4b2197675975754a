// Which commands of an entry the threads of a host run at once.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstdint>
#include <vector>

namespace k31::tool {

constexpr uint32_t kNoGroup = ~0u; // of events, which a host does not need

// A number for each command, as Bind will have it: commands with equal numbers run at once, lower ones before. A collective is
// alone. Empty for plans of a GPU, whose order is that of streams.
std::vector<uint32_t> hostGroups(const plan::Plan &plan, const plan::Entry &entry);

} // namespace k31::tool
