#include "tools/k31c/weight_readers.h"
#include "runtime/schema/launches.h"
#include "runtime/schema/shares.h"
#include "tools/k31c/plan_text.h"
#include <algorithm>
#include <set>

namespace k31::tool {

WeightReaders::WeightReaders(const plan::Plan &plan) : plan(plan) {
  for (const plan::Entry *entry : *plan.entries())
    for (uint32_t i = 0; i < entry->commands()->size(); ++i)
      if (const plan::Launch *launch = plan::launch_of(*entry, i))
        add(*launch);
}

std::vector<std::string> WeightReaders::of(const plan::WeightStack &stack) const {
  std::set<std::string> names;
  // A launch reads a member from its begin on, as far as this part or further, or from this part of it on.
  const uint64_t part = stack.layout()->group_begin() * stack.layout()->dest_row_bytes();
  for (uint32_t i = 0; i < plan::held_members(*plan.mesh(), stack); ++i)
    for (const uint64_t at : {uint64_t(0), part})
      if (auto found = byPlace.find({stack.arena(), stack.dest() + i * stack.stride() + at}); found != byPlace.end())
        for (const auto &[name, bytes] : found->second)
          if (at + bytes > part)
            names.insert(name);
  return {names.begin(), names.end()};
}

void WeightReaders::add(const plan::Launch &launch) {
  const std::string name = placeOf(launch.label()).name + " (" + plan.kernels()->Get(launch.kernel())->name()->str() + ")";
  for (const plan::Slice *arg : *launch.args())
    if (arg->access() == plan::Access::read) {
      uint64_t &bytes = byPlace[{arg->arena(), arg->offset()}][name];
      bytes = std::max(bytes, arg->bytes());
    }
}

} // namespace k31::tool
