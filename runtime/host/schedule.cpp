#include "runtime/host/schedule.h"
#include <algorithm>
#include <numeric>

namespace k31::host {
namespace {

// Only so many jobs before one are compared with it; whatever came before those is taken as needed. Keeps Bind linear.
constexpr size_t kWindow = 48;
// Parts of a launch that make it worth more than one item a thread: threads that are late then leave items to others.
constexpr uint32_t kLongParts = 64;
constexpr uint32_t kItemsOfLong = 4;

bool conflict(const Job &a, const Job &b) {
  for (const Touch &x : a.touches)
    for (const Touch &y : b.touches)
      if ((x.writes || y.writes) && x.begin < y.end && y.begin < x.end)
        return true;
  return false;
}

// The group of each job: one behind the last job that it has to wait for.
std::vector<uint32_t> groups_of(std::span<const Job> jobs) {
  std::vector<uint32_t> groups(jobs.size());
  uint32_t before = 0; // first group behind all jobs that are too old to be compared
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i > kWindow)
      before = std::max(before, groups[i - kWindow - 1] + 1);
    uint32_t group = before;
    for (size_t j = i > kWindow ? i - kWindow : 0; j < i; ++j)
      if (groups[j] >= group && conflict(jobs[j], jobs[i]))
        group = groups[j] + 1;
    groups[i] = group;
  }
  return groups;
}

uint32_t items_of(uint32_t tasks, uint32_t threads) {
  const bool is_long = tasks / threads >= kLongParts;
  return std::min(tasks, is_long ? threads * kItemsOfLong : threads);
}

// Deals the jobs of one group: the heaviest items first, each to the lane with the least work.
void deal(std::span<const Job> jobs, std::vector<size_t> members, uint32_t group, std::vector<Schedule::Lane> &lanes) {
  const auto threads = static_cast<uint32_t>(lanes.size());
  const auto weight = [&](size_t i) { return jobs[i].tasks / std::max(1u, items_of(jobs[i].tasks, threads)); };
  std::stable_sort(members.begin(), members.end(), [&](size_t a, size_t b) { return weight(a) > weight(b); });
  std::vector<uint64_t> load(threads);
  for (const size_t i : members) {
    const uint32_t items = items_of(jobs[i].tasks, threads);
    for (uint32_t task = 0; task < items; ++task) {
      const auto least = std::min_element(load.begin(), load.end()) - load.begin();
      load[least] += weight(i);
      lanes[least].items.push_back({jobs[i].function, jobs[i].args, task, items, group});
    }
  }
  for (Schedule::Lane &lane : lanes)
    lane.end.push_back(static_cast<uint32_t>(lane.items.size()));
}

} // namespace

Schedule make_schedule(std::span<const Job> jobs, int threads) {
  Schedule schedule;
  schedule.lanes.resize(static_cast<size_t>(std::max(threads, 1)));
  const std::vector<uint32_t> groups = groups_of(jobs);
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return groups[a] < groups[b]; });
  for (size_t i = 0; i < order.size();) {
    std::vector<size_t> members;
    const uint32_t group = groups[order[i]];
    for (; i < order.size() && groups[order[i]] == group; ++i)
      members.push_back(order[i]);
    deal(jobs, std::move(members), schedule.groups++, schedule.lanes);
  }
  return schedule;
}

} // namespace k31::host
