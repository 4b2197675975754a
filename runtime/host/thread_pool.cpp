#include "runtime/host/thread_pool.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <chrono>

namespace k31::host {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Spins until ready() or for about kSpin; true when ready.
template <class Ready> bool spin(Ready ready) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready())
        return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

constexpr uint32_t launch_of(uint64_t ticket) { return static_cast<uint32_t>(ticket >> 32); }
constexpr uint32_t left_in(uint64_t ticket) { return static_cast<uint32_t>(ticket); }

} // namespace

ThreadPool::ThreadPool(int threads) {
  try {
    workers.reserve(static_cast<size_t>(std::max(threads - 1, 0)));
    for (int i = 1; i < threads; ++i)
      workers.emplace_back([this] { work(); });
  } catch (...) {
    stop(); // no destructor will: a thread that is not joined ends the process
    throw;
  }
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::start(int threads) {
  try {
    return std::make_unique<ThreadPool>(threads);
  } catch (const std::exception &error) { // system_error, or bad_alloc
    return fail(Code::out_of_memory,
                cat("cannot start ", threads, " threads: ", error.what(), "; use fewer, or raise the limits of the process"));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping.store(true);
  epoch.fetch_add(1);
  epoch.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::run(KernelFunction f, const void *a, uint32_t count) {
  if (count <= 1 || workers.empty()) {
    for (uint32_t task = 0; task < count; ++task)
      f(a, task, count);
    return;
  }
  // All tasks of the launch before are done, so no worker holds a ticket: these words may change.
  function.store(f, std::memory_order_relaxed);
  args.store(a, std::memory_order_relaxed);
  tasks.store(count, std::memory_order_relaxed);
  done.store(0, std::memory_order_relaxed);
  const uint32_t number = launch_of(ticket.load(std::memory_order_relaxed)) + 1;
  const uint64_t opened = static_cast<uint64_t>(number) << 32 | count;
  ticket.store(opened, std::memory_order_release);
  // Sequentially consistent, as is the sleeper's side: either it sees the new epoch or we see the sleeper.
  epoch.store(number);
  if (sleepers.load() > 0)
    epoch.notify_all();

  const uint32_t mine = take_tasks(opened);
  if (mine > 0)
    done.fetch_add(mine, std::memory_order_acq_rel);
  const auto finished = [&] { return done.load(std::memory_order_acquire) == count; };
  while (!spin(finished))
    std::this_thread::yield(); // a worker lost its processor in the middle of a task
}

// Takes and does tasks of the launch of `seen` until none is left; the number done.
uint32_t ThreadPool::take_tasks(uint64_t seen) {
  const uint32_t launch = launch_of(seen);
  const KernelFunction f = function.load(std::memory_order_relaxed);
  const void *a = args.load(std::memory_order_relaxed);
  const uint32_t count = tasks.load(std::memory_order_relaxed);
  uint32_t taken = 0;
  while (launch_of(seen) == launch && left_in(seen) > 0) {
    if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    // The launch was open when the ticket was taken, and it cannot end before this task does: f, a and count are its own.
    f(a, count - left_in(seen), count);
    ++taken;
    seen = ticket.load(std::memory_order_acquire);
  }
  return taken;
}

// Waits for another launch than `last`; the ticket as it was seen.
uint64_t ThreadPool::wait_for_launch(uint32_t last) {
  uint64_t seen = 0;
  const auto changed = [&] {
    seen = ticket.load(std::memory_order_acquire);
    return launch_of(seen) != last || stopping.load(std::memory_order_relaxed);
  };
  if (spin(changed))
    return seen;
  sleepers.fetch_add(1);
  epoch.wait(last);
  sleepers.fetch_sub(1);
  seen = ticket.load(std::memory_order_acquire);
  return seen;
}

void ThreadPool::work() {
  uint32_t last = 0;
  while (!stopping.load(std::memory_order_acquire)) {
    const uint64_t seen = wait_for_launch(last);
    if (launch_of(seen) == last)
      continue;
    last = launch_of(seen);
    if (const uint32_t count = take_tasks(seen); count > 0)
      done.fetch_add(count, std::memory_order_acq_rel);
  }
}

} // namespace k31::host
