// Threads that walk a schedule together, each its own lane. A group costs one message between threads, about 0.1 us: a thread
// starts the next group as soon as it sees that all lanes have finished the one before. A thread that waits takes over items of
// lanes whose thread does not come, so a busy machine makes a run slower, never stuck. Between runs workers watch one word for
// some tens of microseconds, then sleep: an idle process uses no processor time.
#pragma once
#include "runtime/base/result.h"
#include "runtime/host/schedule.h"
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace k31::host {

class ThreadPool {
public:
  // `threads` in all: the caller of run() is one of them. Throws when the system gives no more threads; start() does not.
  explicit ThreadPool(int threads);
  static Result<std::unique_ptr<ThreadPool>> start(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const { return static_cast<int>(workers.size()) + 1; }

  // Runs every item of the schedule once, group by group, and returns when all are done. The schedule was made for this number of
  // threads and outlives the pool: a worker that comes late still looks at it. What the caller wrote before is visible to the
  // items, what they wrote is visible after. One caller at a time; items must not call run().
  void run(const Schedule &schedule);

private:
  // Both words hold the number of the run in the high half and a number of items in the low one, so that whoever still
  // looks at an old run can neither take an item of a new one nor wait for it.
  struct alignas(128) Lane {
    std::atomic<uint64_t> taken{0};
    alignas(128) std::atomic<uint64_t> done{0};
  };

  void work(size_t lane);
  void stop();
  void walk(const Schedule &schedule, size_t lane, uint32_t run);
  void wait_for_group(const Schedule &schedule, uint32_t group, uint32_t run);
  bool finished(const Schedule &schedule, uint32_t group, uint32_t run) const;
  bool take_one(const Schedule &schedule, size_t lane, uint32_t end, uint32_t run);
  bool take_from_others(const Schedule &schedule, uint32_t group, uint32_t run);
  uint32_t wait_for_run(uint32_t last);

  std::unique_ptr<Lane[]> lanes;
  alignas(128) std::atomic<uint32_t> number{0}; // of the run: what workers watch
  std::atomic<const Schedule *> current{nullptr};
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> workers;
};

} // namespace k31::host
