#include "codegen/Cost.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace llvm;

namespace k31 {

// A task is worth waking a thread for when it runs for some 50 us: about this much on one core.
static constexpr uint64_t kTaskMultiplyAdds = 512 << 10; // at 10 G/s
static constexpr uint64_t kTaskBytes = 512 << 10;        // at 10 GB/s
static constexpr uint64_t kMaxTasks = 64;
// Less than this is over before a second thread has woken.
static constexpr uint64_t kSmallMultiplyAdds = 20000;
static constexpr uint64_t kSmallBytes = 64 << 10;

static uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

Split splitWork(Work work) {
  std::string counted = formatv("{0} multiply-adds and {1} bytes", work.multiplyAdds, work.bytes);
  if (work.multiplyAdds < kSmallMultiplyAdds && work.bytes < kSmallBytes)
    return {1, formatv("{0}: below {1} and {2}, one task", counted, kSmallMultiplyAdds, kSmallBytes)};
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
  uint64_t fit = std::max<uint64_t>(1, kWorkspaceLimit / std::max<uint64_t>(1, rowBytes));
  if (fit < split.tasks) {
    split.reason += formatv("; {0} bytes of scratch a task within {1}: {2} tasks", rowBytes, kWorkspaceLimit, fit).str();
    split.tasks = static_cast<uint32_t>(fit);
  }
  return split;
}

} // namespace k31
