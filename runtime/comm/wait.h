// Waiting for another rank without keeping the processor from it: some looks in a row, then the rest of the time slice, then
// sleep.
#pragma once
#include "runtime/base/cat.h"
#include "runtime/base/result.h"
#include <atomic>
#include <chrono>
#include <sched.h>
#include <thread>

namespace k31::comm {

// Longest wait of one collective, in seconds; 0: no limit. Set once the weights are loaded, which may take long and not equally
// so.
inline std::atomic<int> wait_limit = 0;

// One wait, between its looks.
class Waiting {
public:
  // Gives the processor to others for a while; false: the limit has passed.
  bool on() {
    if (looks < 64)
      __builtin_ia32_pause();
    else if (looks < 4096)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (looks == 4096)
      begin = Clock::now();
    const int limit = wait_limit.load(std::memory_order_relaxed);
    return looks++ <= 4096 || limit <= 0 || Clock::now() - begin <= std::chrono::seconds(limit);
  }

private:
  using Clock = std::chrono::steady_clock;
  uint32_t looks = 0;
  Clock::time_point begin;
};
inline tl::unexpected<Error> waited_too_long() {
  return fail(Code::io,
              cat("waited ", wait_limit.load(), " s for another rank in a collective; that rank hangs or runs other commands"));
}

// `ready` returns Result<bool>.
template <class Ready> Result<void> wait_until(Ready &&ready) {
  for (Waiting waiting;;) {
    K31_ASSIGN(const bool now, ready());
    if (now)
      return {};
    if (!waiting.on())
      return waited_too_long();
  }
}

} // namespace k31::comm
