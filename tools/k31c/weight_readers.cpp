#include "tools/k31c/weight_readers.h"
#include "runtime/schema/launches.h"
#include "tools/k31c/plan_text.h"
#include <algorithm>

namespace k31::tool {

WeightReaders::WeightReaders(const plan::Plan &plan) {
  for (const plan::Entry *entry : *plan.entries())
    for (uint32_t i = 0; i < entry->commands()->size(); ++i)
      if (const plan::Launch *launch = plan::launch_of(*entry, i))
        add(plan, *launch);
}

std::vector<std::string> WeightReaders::of(const plan::WeightStack &stack) const {
  std::set<std::string> names;
  // A launch reads a member from its begin on, or from this part of it on.
  const uint64_t begin = stack.layout()->group_begin() * stack.layout()->dest_row_bytes();
  for (uint32_t i = 0; i < std::max<uint32_t>(stack.members()->size(), 1); ++i)
    for (const uint64_t at : {uint64_t(0), begin})
      if (auto found = byPlace.find({stack.arena(), stack.dest() + i * stack.stride() + at}); found != byPlace.end())
        names.insert(found->second.begin(), found->second.end());
  return {names.begin(), names.end()};
}

void WeightReaders::add(const plan::Plan &plan, const plan::Launch &launch) {
  const std::string name = placeOf(launch.label()).name + " (" + plan.kernels()->Get(launch.kernel())->name()->str() + ")";
  for (const plan::Slice *arg : *launch.args())
    if (arg->access() == plan::Access::read)
      byPlace[{arg->arena(), arg->offset()}].insert(name);
}

} // namespace k31::tool
