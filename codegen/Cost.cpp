#include "codegen/Cost.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace llvm;

namespace k31 {

// One core of the host that plans are made for. Real ones differ; the ratio to the cost of telling threads is what matters.
static constexpr double kMultiplyAddsPerSecond = 60e9;
static constexpr double kBytesPerSecond = 30e9;
// A message to another thread takes about 0.1 us, and the threads that have none yet wait for theirs: every doubling of the tasks
// costs this much once more, so a task runs for a microsecond or more. Where there are fewer threads, the runtime makes one call
// of several tasks.
static constexpr double kDoublingSeconds = 0.75e-6;
static constexpr uint64_t kMaxTasks = 1024;
static constexpr uint64_t kMaxTasksWithScratch = 64;

static double onOneCore(const Work &work) {
  return std::max(double(work.multiplyAdds) / kMultiplyAddsPerSecond, double(work.bytes) / kBytesPerSecond);
}

static double seconds(const Work &work, uint64_t tasks) {
  return onOneCore(work) / double(tasks) + kDoublingSeconds * std::log2(double(tasks));
}

std::string tasksText(uint32_t tasks) { return formatv("{0} task{1}", tasks, tasks == 1 ? "" : "s"); }

Split splitWork(Work work, uint64_t scratch) {
  const uint64_t fit = scratch ? std::clamp<uint64_t>(kWorkspaceLimit / scratch, 1, kMaxTasksWithScratch) : kMaxTasks;
  const uint64_t most = std::max<uint64_t>(1, std::min({kMaxTasks, work.units, fit}));
  // The time has one valley, at this many tasks; its neighbours show how flat it is.
  const auto lowest = static_cast<uint64_t>(std::ceil(onOneCore(work) * std::log(2.0) / kDoublingSeconds));
  std::set<uint64_t> counts = {1};
  for (uint64_t tasks : {lowest / 2, lowest, lowest * 2})
    counts.insert(std::clamp<uint64_t>(tasks, 1, most));
  Split split;
  split.work = work;
  double best = INFINITY;
  for (uint64_t tasks : counts) {
    const double time = seconds(work, tasks);
    split.candidates.push_back({tasksText(tasks), nanoseconds(time)});
    if (time < best)
      best = time, split.tasks = static_cast<uint32_t>(tasks);
  }
  split.reason = formatv("{0} multiply-adds and {1} bytes take one core {2:f1} us; every doubling of the tasks costs {3:f2} us",
                         work.multiplyAdds, work.bytes, onOneCore(work) * 1e6, kDoublingSeconds * 1e6);
  if (most < lowest)
    split.reason += formatv("; at most {0}", tasksText(most)).str() +
                    (most == kMaxTasks && !scratch ? " in any launch"
                     : most == fit ? formatv(": {0} bytes of scratch each, {1} in all and {2} tasks", scratch, kWorkspaceLimit,
                                             kMaxTasksWithScratch)
                                         .str()
                                   : std::string(": independent parts"));
  return split;
}

} // namespace k31
