// Every item runs once and after the groups before it, results are visible to the caller, and late workers never touch another
// run.
#include "runtime/host/thread_pool.h"
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace k31::host {
namespace {

struct Block {
  uint32_t *hits; // [tasks], not atomic: two runs of one task are a race that a thread sanitizer sees
  uint32_t most;  // tasks of this launch
  std::atomic<uint32_t> *wrong;
};

void count_task(const void *args, uint32_t task, uint32_t tasks) {
  const Block &block = *static_cast<const Block *>(args);
  if (tasks > block.most || task >= tasks)
    ++*block.wrong;
  else
    for (uint32_t i = block.most * task / tasks; i < block.most * (task + 1) / tasks; ++i)
      ++block.hits[i];
}

Schedule one_launch(KernelFunction function, const void *args, uint32_t tasks, int threads) {
  const Job job{function, args, tasks, {}};
  return make_schedule({&job, 1}, threads);
}

TEST(HostThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 8}) {
    std::vector<uint32_t> hits(300);
    std::atomic<uint32_t> wrong{0};
    std::deque<Block> blocks; // one a launch: a stale one would be seen as a wrong number of tasks
    std::deque<Schedule> schedules;
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (uint32_t launch = 0; launch < 2000; ++launch) {
      const uint32_t tasks = launch * 37 % 300;
      std::fill(hits.begin(), hits.end(), 0);
      blocks.push_back({hits.data(), tasks, &wrong});
      pool.run(schedules.emplace_back(one_launch(count_task, &blocks.back(), tasks, threads)));
      for (uint32_t i = 0; i < hits.size(); ++i)
        ASSERT_EQ(hits[i], i < tasks ? 1u : 0u) << "launch " << launch << " task " << i << " threads " << threads;
    }
    EXPECT_EQ(wrong, 0u);
  }
}

// A chain: each step adds the sums of two cells of the step before, so an item that runs too early or twice changes the end.
constexpr uint32_t kCells = 12;
struct Step {
  const uint32_t *from;
  uint32_t *to;
};

void add_neighbours(const void *args, uint32_t task, uint32_t tasks) {
  const Step &step = *static_cast<const Step *>(args);
  for (uint32_t i = kCells * task / tasks; i < kCells * (task + 1) / tasks; ++i)
    step.to[i] += step.from[i] + step.from[(i + 1) % kCells] + 1;
}

TEST(HostThreadPool, StartsAGroupWhenTheOneBeforeIsDone) {
  constexpr size_t kSteps = 60;
  std::vector<uint32_t> expected(kCells);
  for (size_t s = 0; s < kSteps; ++s) {
    std::vector<uint32_t> next(kCells);
    for (uint32_t i = 0; i < kCells; ++i)
      next[i] = expected[i] + expected[(i + 1) % kCells] + 1;
    expected = next;
  }
  for (int threads : {1, 2, 3, 7}) {
    std::vector<std::vector<uint32_t>> cells(kSteps + 1, std::vector<uint32_t>(kCells));
    std::vector<Step> steps;
    for (size_t s = 0; s < kSteps; ++s)
      steps.push_back({cells[s].data(), cells[s + 1].data()});
    std::vector<Job> jobs;
    for (size_t s = 0; s < kSteps; ++s) {
      const auto bytes = [](const std::vector<uint32_t> &v) { return reinterpret_cast<const std::byte *>(v.data()); };
      const std::byte *from = bytes(cells[s]), *to = bytes(cells[s + 1]);
      const uint32_t tasks = s % 5 == 4 ? 600 : uint32_t(s % 4 + 1); // 600: more than one item a thread
      jobs.push_back({add_neighbours,
                      &steps[s],
                      tasks,
                      {{from, from + sizeof(uint32_t) * kCells, false}, {to, to + sizeof(uint32_t) * kCells, true}}});
    }
    const Schedule schedule = make_schedule(jobs, threads);
    EXPECT_EQ(schedule.groups, kSteps);
    ThreadPool pool(threads);
    for (int run = 0; run < 300; ++run) {
      for (std::vector<uint32_t> &row : cells)
        std::fill(row.begin(), row.end(), 0);
      pool.run(schedule);
      ASSERT_EQ(cells[kSteps], expected) << "run " << run << " threads " << threads;
    }
  }
}

TEST(HostSchedule, GroupsWhatIsIndependent) {
  const std::byte memory[8] = {};
  const auto job = [&](size_t read, size_t write, uint32_t tasks) {
    return Job{
        count_task, nullptr, tasks, {{memory + read, memory + read + 1, false}, {memory + write, memory + write + 1, true}}};
  };
  // 0 -> 1 and 0 -> 2 are independent; 3 needs both 1 and, by way of a buffer that is written again, 2.
  const std::vector<Job> jobs = {job(0, 1, 8), job(1, 2, 1), job(1, 3, 1), job(2, 3, 2), job(7, 6, 1)};
  const Schedule schedule = make_schedule(jobs, 2);
  EXPECT_EQ(schedule.groups, 3u);
  ASSERT_EQ(schedule.lanes.size(), 2u);
  EXPECT_EQ(schedule.lanes[0].end, (std::vector<uint32_t>{2, 3, 4})); // half of the first job and the last one
  EXPECT_EQ(schedule.lanes[1].end, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(schedule.lanes[0].items[0].tasks, 2u);
  EXPECT_EQ(schedule.lanes[1].items[0].task, 1u);
}

void slow_task(const void *args, uint32_t, uint32_t) {
  std::this_thread::sleep_for(std::chrono::microseconds(300));
  ++*static_cast<std::atomic<uint32_t> *>(const_cast<void *>(args));
}

TEST(HostThreadPool, WakesSleepingWorkers) {
  std::atomic<uint32_t> done{0};
  const Schedule schedule = one_launch(slow_task, &done, 3, 3);
  ThreadPool pool(3);
  for (uint32_t i = 1; i <= 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // long past the time that workers watch
    pool.run(schedule);
    ASSERT_EQ(done, 3 * i);
  }
}

TEST(HostThreadPool, WorkersShareTheTasks) {
  std::atomic<uint32_t> met{0};
  // Each of the two tasks waits for the other one: they must be on two threads.
  const auto meet = [](const void *args, uint32_t, uint32_t) {
    auto &count = *static_cast<std::atomic<uint32_t> *>(const_cast<void *>(args));
    ++count;
    while (count < 2)
      std::this_thread::yield();
  };
  const Schedule schedule = one_launch(meet, &met, 2, 2);
  ThreadPool pool(2);
  pool.run(schedule);
  EXPECT_EQ(met, 2u);
}

double process_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(HostThreadPool, IdleWorkersSleep) {
  std::atomic<uint32_t> done{0};
  const Schedule schedule = one_launch(slow_task, &done, 4, 4);
  ThreadPool pool(4);
  pool.run(schedule);
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
