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
        add(*launch, entry->stage());
}

std::vector<std::string> WeightReaders::of(const plan::WeightStack &stack) const {
  std::set<std::string> names;
  const auto found = arenas.find({stack.stage(), stack.arena()});
  if (found == arenas.end())
    return {};
  const Arena &arena = found->second;
  const plan::Layout &l = *stack.layout();
  const uint64_t last = l.row_count() - 1, lastRow = last / l.group() * l.group_stride() + l.group_begin() + last % l.group();
  for (uint32_t i = 0; i < plan::held_members(*plan.mesh(), stack); ++i) {
    const uint64_t member = stack.dest() + i * stack.stride(), begin = member + l.group_begin() * l.dest_row_bytes();
    const uint64_t end = member + lastRow * l.dest_row_bytes() + l.byte_count();
    for (auto at = arena.readers.lower_bound(begin - std::min(begin, arena.longest));
         at != arena.readers.end() && at->first < end; ++at)
      for (const auto &[name, bytes] : at->second)
        if (at->first + bytes > begin)
          names.insert(name);
  }
  return {names.begin(), names.end()};
}

void WeightReaders::add(const plan::Launch &launch, uint32_t stage) {
  const std::string name = placeOf(launch.label()).name + " (" + plan.kernels()->Get(launch.kernel())->name()->str() + ")";
  for (const plan::Slice *arg : *launch.args())
    if (arg->access() == plan::Access::read) {
      Arena &arena = arenas[{stage, arg->arena()}];
      uint64_t &bytes = arena.readers[arg->offset()][name];
      bytes = std::max(bytes, arg->bytes());
      arena.longest = std::max(arena.longest, arg->bytes());
    }
}

} // namespace k31::tool
