#include "runtime/host/thread_pool.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <chrono>

namespace k31::host {
namespace {

constexpr auto kWatch = std::chrono::microseconds(50); // for the next run, before a worker sleeps
constexpr int kLooks = 256;                            // at the end of a group without a pause: about 0.5 us
constexpr int kPatience = 32;                          // pauses, some 50 ns each, before items of others are taken

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

constexpr uint64_t word(uint32_t run, uint32_t items) { return static_cast<uint64_t>(run) << 32 | items; }
constexpr uint32_t run_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
constexpr uint32_t items_of(uint64_t word) { return static_cast<uint32_t>(word); }

} // namespace

ThreadPool::ThreadPool(int threads) : lanes(std::make_unique<Lane[]>(static_cast<size_t>(std::max(threads, 1)))) {
  try {
    workers.reserve(static_cast<size_t>(std::max(threads - 1, 0)));
    for (int i = 1; i < threads; ++i)
      workers.emplace_back([this, i] { work(static_cast<size_t>(i)); });
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
  number.fetch_add(1);
  number.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::run(const Schedule &schedule) {
  if (workers.empty()) {
    for (const Item &item : schedule.lanes[0].items)
      item.function(item.args, item.task, item.tasks);
    return;
  }
  // All items of the run before are done: no thread holds one, and words of an old run match none of this one.
  const uint32_t run = number.load(std::memory_order_relaxed) + 1;
  for (size_t i = 0; i < schedule.lanes.size(); ++i) {
    lanes[i].taken.store(word(run, 0), std::memory_order_relaxed);
    lanes[i].done.store(word(run, 0), std::memory_order_relaxed);
  }
  current.store(&schedule, std::memory_order_release); // a late worker that sees it sees the words above too
  // Sequentially consistent, as is the sleeper's side: either it sees the new number or we see the sleeper.
  number.store(run);
  if (sleepers.load() > 0)
    number.notify_all();
  walk(schedule, 0, run);
  wait_for_group(schedule, schedule.groups, run);
}

void ThreadPool::walk(const Schedule &schedule, size_t lane, uint32_t run) {
  const Schedule::Lane &mine = schedule.lanes[lane];
  for (uint32_t group = 0; group < schedule.groups; ++group) {
    if (mine.end[group] == (group ? mine.end[group - 1] : 0))
      continue; // nothing to do there, so nothing to wait for
    wait_for_group(schedule, group, run);
    while (take_one(schedule, lane, mine.end[group], run)) {
    }
  }
}

// Takes and does the next item of a lane below `end`; false when there is none.
bool ThreadPool::take_one(const Schedule &schedule, size_t lane, uint32_t end, uint32_t run) {
  uint64_t seen = lanes[lane].taken.load(std::memory_order_relaxed);
  do {
    if (run_of(seen) != run || items_of(seen) >= end)
      return false;
  } while (!lanes[lane].taken.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed));
  const Item &item = schedule.lanes[lane].items[items_of(seen)];
  item.function(item.args, item.task, item.tasks);
  lanes[lane].done.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

// All items of the groups before `group` are done, or the whole run is.
bool ThreadPool::finished(const Schedule &schedule, uint32_t group, uint32_t run) const {
  if (group == 0)
    return true;
  for (size_t i = 0; i < schedule.lanes.size(); ++i) {
    const uint64_t done = lanes[i].done.load(std::memory_order_acquire);
    if (run_of(done) == run && items_of(done) < schedule.lanes[i].end[group - 1])
      return false;
  }
  return true;
}

// Does one item of any lane in a group before `group` that has started; false when there is none.
bool ThreadPool::take_from_others(const Schedule &schedule, uint32_t group, uint32_t run) {
  for (size_t i = 0; i < schedule.lanes.size(); ++i) {
    const uint64_t taken = lanes[i].taken.load(std::memory_order_relaxed);
    const Schedule::Lane &lane = schedule.lanes[i];
    if (run_of(taken) != run || items_of(taken) >= lane.end[group - 1])
      continue;
    const uint32_t next = lane.items[items_of(taken)].group;
    if (finished(schedule, next, run) && take_one(schedule, i, lane.end[next], run))
      return true;
  }
  return false;
}

void ThreadPool::wait_for_group(const Schedule &schedule, uint32_t group, uint32_t run) {
  for (int i = 0; i < kLooks; ++i)
    if (finished(schedule, group, run))
      return;
  for (int waited = 0; !finished(schedule, group, run); ++waited) {
    if (waited < kPatience)
      pause();
    else if (!take_from_others(schedule, group, run)) {
      // Items are under way elsewhere. A thread that lost its processor gets ours, later on.
      if (waited < 1000)
        pause();
      else
        std::this_thread::yield();
    }
  }
}

// Waits for another run than `last`; its number.
uint32_t ThreadPool::wait_for_run(uint32_t last) {
  uint32_t seen = 0;
  const auto changed = [&] { return (seen = number.load(std::memory_order_acquire)) != last; };
  const auto end = std::chrono::steady_clock::now() + kWatch;
  do {
    for (int i = 0; i < 32; ++i) {
      if (changed())
        return seen;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  sleepers.fetch_add(1);
  while (!changed())
    number.wait(last);
  sleepers.fetch_sub(1);
  return seen;
}

void ThreadPool::work(size_t lane) {
  for (uint32_t last = 0;;) {
    last = wait_for_run(last);
    if (stopping.load(std::memory_order_acquire))
      return;
    walk(*current.load(std::memory_order_acquire), lane, last);
  }
}

} // namespace k31::host
