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

// `ready` returns Result<bool>.
template <class Ready> Result<void> wait_until(Ready &&ready) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin;
  for (uint32_t looks = 0;; ++looks) {
    K31_ASSIGN(const bool now, ready());
    if (now)
      return {};
    if (looks < 64)
      __builtin_ia32_pause();
    else if (looks < 4096)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (looks == 4096)
      begin = Clock::now();
    const int limit = wait_limit.load(std::memory_order_relaxed);
    if (looks > 4096 && limit > 0 && Clock::now() - begin > std::chrono::seconds(limit))
      return fail(Code::io, cat("waited ", limit, " s for another rank in a collective; that rank hangs or runs other commands"));
  }
}

} // namespace k31::comm
