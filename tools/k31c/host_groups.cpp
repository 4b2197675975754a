#include "tools/k31c/host_groups.h"
#include "runtime/host/schedule.h"

namespace k31::tool {
namespace {

// Stands for the address of a byte: arenas far from each other.
const std::byte *addressOf(const plan::Slice &slice) {
  return reinterpret_cast<const std::byte *>((uint64_t(slice.arena()) + 1) << 48 | slice.offset());
}

host::Touch touchOf(const plan::Slice &slice) {
  const std::byte *begin = addressOf(slice);
  return {begin, begin + slice.bytes(), slice.access() != plan::Access::read};
}

} // namespace

std::vector<uint32_t> hostGroups(const plan::Plan &plan, const plan::Entry &entry) {
  if (plan.key()->target()->string_view() != "cpu")
    return {};
  std::vector<uint32_t> groups(entry.commands()->size(), kNoGroup);
  std::vector<host::Job> jobs;
  uint32_t done = 0; // groups of the parts before
  const auto close = [&] {
    const host::Schedule schedule = host::make_schedule(jobs, 1);
    for (const host::Item &item : schedule.lanes[0].items)
      groups[static_cast<const uint32_t *>(item.args) - groups.data()] = done + item.group;
    done += schedule.groups;
    jobs.clear();
  };
  for (uint32_t i = 0; i < groups.size(); ++i) {
    const void *table = entry.commands()->Get(i);
    switch (entry.commands_type()->GetEnum<plan::Command>(i)) {
    case plan::Command::Launch: {
      host::Job job{nullptr, &groups[i], 1, {}};
      for (const plan::Slice *slice : *static_cast<const plan::Launch *>(table)->args())
        job.touches.push_back(touchOf(*slice));
      jobs.push_back(std::move(job));
      break;
    }
    case plan::Command::Copy: {
      const auto &copy = *static_cast<const plan::Copy *>(table);
      host::Touch written = touchOf(*copy.dest());
      written.writes = true;
      jobs.push_back({nullptr, &groups[i], 1, {touchOf(*copy.source()), written}});
      break;
    }
    case plan::Command::Collective:
      close();
      groups[i] = done++;
      break;
    default:
      break;
    }
  }
  close();
  return groups;
}

} // namespace k31::tool
