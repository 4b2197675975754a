// Every task runs once, results are visible to the caller, and late workers never touch another launch.
#include "runtime/host/thread_pool.h"
#include <cerrno>
#include <cstring>
#include <ctime>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace k31::host {
namespace {

struct Block {
  uint32_t *hits;    // [tasks], not atomic: two runs of one task are a race that a thread sanitizer sees
  uint32_t expected; // tasks of this launch
  std::atomic<uint32_t> *wrong;
};

void count_task(const void *args, uint32_t task, uint32_t tasks) {
  const Block &block = *static_cast<const Block *>(args);
  if (tasks != block.expected || task >= tasks)
    ++*block.wrong;
  else
    ++block.hits[task];
}

TEST(HostThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::atomic<uint32_t> wrong{0};
    std::vector<uint32_t> hits(300);
    for (uint32_t launch = 0; launch < 2000; ++launch) {
      const uint32_t tasks = launch * 37 % 300;
      std::fill(hits.begin(), hits.end(), 0);
      // A block of its own for each launch: a stale one would be seen as a wrong number of tasks.
      const Block block{hits.data(), tasks, &wrong};
      pool.run(count_task, &block, tasks);
      for (uint32_t i = 0; i < hits.size(); ++i)
        ASSERT_EQ(hits[i], i < tasks ? 1u : 0u) << "launch " << launch << " task " << i << " threads " << threads;
    }
    EXPECT_EQ(wrong, 0u);
  }
}

void slow_task(const void *args, uint32_t, uint32_t) {
  std::this_thread::sleep_for(std::chrono::microseconds(300));
  ++*static_cast<std::atomic<uint32_t> *>(const_cast<void *>(args));
}

TEST(HostThreadPool, WakesSleepingWorkers) {
  ThreadPool pool(3);
  std::atomic<uint32_t> done{0};
  for (uint32_t i = 1; i <= 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // long past the time that workers watch
    pool.run(slow_task, &done, 6);
    ASSERT_EQ(done, 6 * i);
  }
}

TEST(HostThreadPool, WorkersShareTheTasks) {
  ThreadPool pool(2);
  std::atomic<uint32_t> met{0};
  // Each of the two tasks waits for the other one: they must be on two threads.
  const auto meet = [](const void *args, uint32_t, uint32_t) {
    auto &count = *static_cast<std::atomic<uint32_t> *>(const_cast<void *>(args));
    ++count;
    while (count < 2)
      std::this_thread::yield();
  };
  pool.run(meet, &met, 2);
  EXPECT_EQ(met, 2u);
}

double process_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(HostThreadPool, IdleWorkersSleep) {
  ThreadPool pool(4);
  std::atomic<uint32_t> done{0};
  pool.run(slow_task, &done, 4);
  const double before = process_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(process_seconds() - before, 0.1) << "workers burn time while nothing runs";
}

// In a process of its own that may have four threads: one error, no abort, and the threads that did start are gone.
TEST(HostThreadPool, ReportsThreadsThatCannotStart) {
  const auto starve = [] {
    if (geteuid() == 0 && setuid(65534) != 0) // the limit does not count for root
      fprintf(stderr, "setuid: %s\n", strerror(errno));
    const rlimit limit{4, 4};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0)
      std::_Exit(8);
    const auto pool = ThreadPool::start(64);
    if (pool)
      std::_Exit(7);
    fprintf(stderr, "%s\n", pool.error().message.c_str());
    std::_Exit(pool.error().code == Code::out_of_memory ? 0 : 6);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(starve(), ::testing::ExitedWithCode(0), "cannot start 64 threads: .*; use fewer");
}

} // namespace
} // namespace k31::host
