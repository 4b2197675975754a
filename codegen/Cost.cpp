#include "codegen/Cost.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace llvm;

namespace k31 {

// A task is worth a message to another thread (about 0.1 us) when it runs for a microsecond or more: about this much on one core.
// The runtime makes one call of several tasks where there are fewer threads.
static constexpr uint64_t kTaskMultiplyAdds = 64 << 10; // at 50 G/s
static constexpr uint64_t kTaskBytes = 32 << 10;        // at 30 GB/s
static constexpr uint64_t kMaxTasks = 1024;
static constexpr uint64_t kMaxTasksWithScratch = 64;

static uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

Split splitWork(Work work) {
  std::string counted = formatv("{0} multiply-adds and {1} bytes", work.multiplyAdds, work.bytes);
  uint64_t wanted = std::max(ceilDiv(work.multiplyAdds, kTaskMultiplyAdds), ceilDiv(work.bytes, kTaskBytes));
  uint64_t tasks = std::max<uint64_t>(1, std::min({wanted, kMaxTasks, work.units}));
  std::string reason =
      formatv("{0}: {1} tasks of about {2} multiply-adds or {3} bytes", counted, wanted, kTaskMultiplyAdds, kTaskBytes);
  if (tasks < wanted)
    reason += formatv(", at most {0} ({1})", tasks, tasks == kMaxTasks ? "any launch" : "independent parts").str();
  return {static_cast<uint32_t>(tasks), reason};
}

Split splitWork(Work work, uint64_t rowBytes) {
  Split split = splitWork(work);
  uint64_t fit = std::clamp<uint64_t>(kWorkspaceLimit / std::max<uint64_t>(1, rowBytes), 1, kMaxTasksWithScratch);
  if (fit < split.tasks) {
    split.reason += formatv("; {0} bytes of scratch a task, {1} in all and {2} tasks at most: {3} tasks", rowBytes,
                            kWorkspaceLimit, kMaxTasksWithScratch, fit)
                        .str();
    split.tasks = static_cast<uint32_t>(fit);
  }
  return split;
}

} // namespace k31
