#include "tools/k31_run/ranks.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/comm/alone.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/lines.h"
#include "runtime/comm/mpi.h"
#include "runtime/plan/mesh.h"
#include "runtime/schema/plan_generated.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace k31::run {

Ranks &ranks() {
  static Ranks one;
  return one;
}

void Ranks::become(uint32_t rank) {
  if (rank != 0 && !std::freopen("/dev/null", "w", stdout))
    std::fclose(stdout);
}

Result<void> Ranks::start_launched() {
  if (comm::launched_ranks().value_or(1) == 1)
    return {};
  K31_ASSIGN(world_, comm::start_mpi());
  if (world_->size() == 1) { // a launcher of another MPI than the module's, which starts everybody alone
    const uint32_t expected = *comm::launched_ranks();
    world_.reset();
    return k31::fail(Code::unsupported,
                     cat("the launcher started ", expected, " processes, but MPI says that this one is alone; build ",
                         "libk31_mpi.so with the MPI of the launcher"));
  }
  std::vector<uint32_t> everybody(world_->size());
  std::iota(everybody.begin(), everybody.end(), 0);
  K31_ASSIGN(const std::unique_ptr<comm::Group> all, world_->group(everybody, world_->rank()));
  K31_ASSIGN(comm::Lines lines, comm::connect_lines(*world_, *all));
  if (world_->rank() == 0)
    hub = std::thread([sockets = std::move(lines.hub)] {
      const auto ended = [](uint32_t) {
        return "ended without a word: it was killed, or its machine is gone; the launcher may know more";
      };
      if (const auto done = comm::Hub(sockets).run(ended); !done)
        std::fprintf(stderr, "k31-run: error: %s\n", done.error().message.c_str());
    });
  watchdog = std::make_unique<comm::Watchdog>(lines.mine, world_->rank() == 1);
  become(world_->rank());
  return {};
}

Result<void> Ranks::enter(const plan::Plan &plan) {
  const uint32_t count = world_size(*plan.mesh());
  if (world_)
    return comm::check_size(*world_, *plan.mesh());
  if (count == 1)
    return {};
  K31_ASSIGN(memory, comm::LocalMemory::make(count));
  std::fflush(nullptr);
  std::vector<int> lines, children;
  for (uint32_t rank = 0; rank < count; ++rank) {
    int line[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) != 0)
      return system_error("cannot make a pair of sockets", errno);
    const pid_t parent = ::getpid(), child = ::fork();
    if (child < 0) {
      for (const int started : children)
        ::kill(started, SIGKILL);
      return system_error(cat("cannot start process ", rank, " of ", count), errno);
    }
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL); // no rank outlives the parent
      if (::getppid() != parent)
        ::_exit(1);
      for (const int other : lines)
        ::close(other);
      ::close(line[0]);
      world_ = std::make_unique<comm::LocalWorld>(*memory, rank);
      watchdog = std::make_unique<comm::Watchdog>(line[1], false);
      become(rank);
      return {};
    }
    ::close(line[1]);
    lines.push_back(line[0]), children.push_back(child);
  }
  watch_children(std::move(lines), children);
}

// How a child ended, once its line was cut.
static std::string end_of(int child) {
  int status = 0;
  for (int i = 0; i < 100 && ::waitpid(child, &status, WNOHANG) == 0; ++i)
    ::usleep(10'000);
  if (WIFSIGNALED(status))
    return cat("was ended by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")",
               WTERMSIG(status) == SIGKILL ? ": by hand, or for want of memory" : "");
  return cat("ended with exit code ", WEXITSTATUS(status), " and no reason");
}

void Ranks::watch_children(std::vector<int> lines, const std::vector<int> &children) {
  const auto done = comm::Hub(std::move(lines)).run([&](uint32_t rank) { return end_of(children[rank]); });
  if (!done)
    std::fprintf(stderr, "k31-run: error: %s\n", done.error().message.c_str());
  // They have been told to end; who does not within some seconds hangs in a driver.
  int code = done ? 0 : 1;
  for (const int child : children) {
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < 500 && (ended = ::waitpid(child, &status, done ? 0 : WNOHANG)) == 0; ++i)
      ::usleep(10'000);
    if (ended == 0) // what has ended may have given its number to another process
      ::kill(child, SIGKILL);
    if (done && status != 0)
      code = 1;
  }
  ::_exit(code);
}

Result<void> Ranks::enter_alone(const plan::Plan &plan, uint32_t rank) {
  const uint32_t count = world_size(*plan.mesh());
  if (rank >= count)
    return k31::fail(Code::invalid_input, cat("--rank ", rank, ", but the plan has ranks 0 to ", count - 1));
  if (several())
    return k31::fail(Code::invalid_input, "--stub-collectives is for one process; start it without a launcher");
  world_ = std::make_unique<comm::AloneWorld>(rank, count);
  return {};
}

void Ranks::finish() {
  if (!several())
    return;
  watchdog->finish();
  if (hub.joinable())
    hub.join();
  watchdog.reset();
  world_.reset();
}

} // namespace k31::run
