// Threads that share the tasks of one launch. A launch costs about a microsecond: workers watch one word for some tens of
// microseconds after their last task, then sleep, so an idle process uses no processor time.
#pragma once
#include "runtime/base/result.h"
#include "runtime/host/image.h"
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

  // Calls function(args, task, tasks) for every task below `tasks`, each once, and returns when all are done. What the caller
  // wrote before is visible to the tasks, what they wrote is visible after. One caller at a time; tasks must not call run().
  void run(KernelFunction function, const void *args, uint32_t tasks);

private:
  void work();
  void stop();
  uint32_t take_tasks(uint64_t seen);
  uint64_t wait_for_launch(uint32_t last);

  // High half: number of the launch; low half: tasks that nobody has taken yet. One word, so a worker that comes late can never
  // take a task of another launch than the one whose function it has read.
  alignas(64) std::atomic<uint64_t> ticket{0};
  std::atomic<KernelFunction> function{nullptr};
  std::atomic<const void *> args{nullptr};
  std::atomic<uint32_t> tasks{0};
  alignas(64) std::atomic<uint32_t> done{0};  // tasks of this launch that are finished
  alignas(64) std::atomic<uint32_t> epoch{0}; // number of the launch again: what sleepers wait for
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> workers;
};

} // namespace k31::host
