// The hub hears of every kind of end, names the first, and ends the others. Ranks are forked: their ends are real.
#include "runtime/comm/abort.h"
#include "runtime/comm/watchdog.h"
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace k31::test {
namespace {

using Body = std::function<void(uint32_t rank, comm::Watchdog &)>;

struct Outcome {
  Result<void> result;
  std::vector<int> codes; // exit codes; 128 and a signal
};

// One process a rank; a rank whose body returns has finished.
Outcome run(uint32_t ranks, const Body &body, std::chrono::seconds silence = comm::kSilence) {
  std::vector<int> lines;
  std::vector<pid_t> children;
  for (uint32_t r = 0; r < ranks; ++r) {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const pid_t child = fork();
    if (child == 0) {
      for (const int line : lines)
        close(line);
      close(pair[0]);
      {
        comm::Watchdog watchdog(pair[1], r == 1, silence);
        body(r, watchdog);
        watchdog.finish();
      }
      _exit(0);
    }
    close(pair[1]);
    lines.push_back(pair[0]), children.push_back(child);
  }
  Outcome outcome;
  outcome.result = comm::Hub(lines, silence).run([](uint32_t) { return "ended without a word"; });
  for (const pid_t child : children) {
    int status = 0;
    if (outcome.result || waitpid(child, &status, WNOHANG) == 0) {
      for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; ++i)
        usleep(50'000);
      if (kill(child, SIGKILL) == 0) // stopped ones
        waitpid(child, &status, 0);
    }
    outcome.codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return outcome;
}

void hang(uint32_t, comm::Watchdog &) {
  for (;;)
    pause();
}

TEST(Watchdog, AllFinish) {
  const Outcome outcome = run(3, [](uint32_t rank, comm::Watchdog &) { usleep(rank * 100'000); });
  EXPECT_TRUE(outcome.result);
  EXPECT_EQ(outcome.codes, (std::vector<int>{0, 0, 0}));
}

TEST(Watchdog, OneFailureEndsAllThatHang) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run(4, [](uint32_t rank, comm::Watchdog &watchdog) {
    if (rank == 2)
      watchdog.fail("shard 7 is cut short");
    hang(rank, watchdog);
  });
  ASSERT_FALSE(outcome.result);
  EXPECT_EQ(outcome.result.error().message, "rank 2: shard 7 is cut short");
  EXPECT_EQ(outcome.codes, (std::vector<int>{1, 1, 1, 1}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Watchdog, WhoFailsAlikeIsNamedOnce) {
  const Outcome outcome = run(3, [](uint32_t rank, comm::Watchdog &watchdog) {
    usleep((3 - rank) * 20'000);
    watchdog.fail("no such folder");
  });
  ASSERT_FALSE(outcome.result);
  EXPECT_EQ(outcome.result.error().message, "rank 0: no such folder");
  EXPECT_EQ(outcome.codes, (std::vector<int>{1, 1, 1}));
}

TEST(Watchdog, AKilledRankIsTheReasonAndNotWhatFollows) {
  const Outcome outcome = run(3, [](uint32_t rank, comm::Watchdog &watchdog) {
    if (rank == 1)
      raise(SIGKILL);
    usleep(50'000);
    if (rank == 2)
      watchdog.fail("the connection to rank 1 is closed");
    hang(rank, watchdog);
  });
  ASSERT_FALSE(outcome.result);
  EXPECT_EQ(outcome.result.error().message, "rank 1 ended without a word; all ranks end");
  EXPECT_EQ(outcome.codes, (std::vector<int>{1, 128 + SIGKILL, 1}));
}

TEST(Watchdog, AStoppedRankCountsAsDead) {
  const Outcome outcome = run(
      2,
      [](uint32_t rank, comm::Watchdog &watchdog) {
        if (rank == 1)
          raise(SIGSTOP);
        hang(rank, watchdog);
      },
      std::chrono::seconds(3));
  ASSERT_FALSE(outcome.result);
  EXPECT_EQ(outcome.result.error().message, "rank 1: has not answered for 3 s: it is stopped, or its machine is");
  EXPECT_EQ(outcome.codes[0], 1);
}

// The thread's stack does not fit: the hub hears why, and the process says nothing itself.
TEST(Watchdog, WithoutAThreadTheRankFails) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pair[0]);
    pthread_attr_t stack; // larger than what is left of the stacks of threads that have ended
    pthread_attr_init(&stack), pthread_attr_setstacksize(&stack, 256u << 20), pthread_setattr_default_np(&stack);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * size_t(sysconf(_SC_PAGESIZE)) + (2u << 20);
    const rlimit room{limit, limit};
    setrlimit(RLIMIT_AS, &room);
    const comm::Watchdog watchdog(pair[1], false);
    _exit(0);
  }
  close(pair[1]);
  const auto result = comm::Hub({pair[0]}).run([](uint32_t) { return "ended without a word"; });
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message.find("rank 0: cannot start the thread that watches the ranks: "), 0u)
      << result.error().message;
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Watchdog, CommunicatorsAreAborted) {
  const Outcome outcome = run(2, [](uint32_t rank, comm::Watchdog &watchdog) {
    const comm::OnAbort hook([] { _exit(77); });
    if (rank == 0)
      watchdog.fail("over");
    hang(rank, watchdog);
  });
  EXPECT_FALSE(outcome.result);
  EXPECT_EQ(outcome.codes, (std::vector<int>{77, 77}));
}

} // namespace
} // namespace k31::test
