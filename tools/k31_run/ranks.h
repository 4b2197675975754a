// This process as one rank of a plan's mesh. A launcher (mpirun, srun) started it beside the others, or k31-run starts the ranks
// of one host itself: then the first process is their parent and runs nothing.
//
// All ranks run the same command. Rank 0 alone writes what it outputs: on others stdout is closed, and files are not written.
#pragma once
#include "runtime/comm/local.h"
#include "runtime/comm/watchdog.h"
#include "runtime/session.h"
#include <optional>
#include <thread>

namespace k31::run {

class Ranks {
public:
  // Under a launcher of several processes: starts MPI and the watchdog. Called before the command runs, so that every failure of
  // it ends all ranks.
  Result<void> start_launched();

  // Once the plan is known: refuses a wrong number of processes, or starts the ranks of a mesh. In their parent it does not
  // return. Called before any thread is started.
  Result<void> enter(const plan::Plan &plan);

  // In place of enter(): this process is rank `rank` of the plan's mesh, without the others (comm::AloneWorld).
  Result<void> enter_alone(const plan::Plan &plan, uint32_t rank);

  comm::World *world() const { return world_.get(); } // null: one rank
  bool several() const { return watchdog != nullptr; }
  bool first() const { return !several() || world_->rank() == 0; }

  // Ends all ranks with this reason, printed once; only when there are several.
  [[noreturn]] void fail(const std::string &reason) { watchdog->fail(reason); }
  // Waits for the other ranks, when there are some.
  void finish();

private:
  [[noreturn]] void watch_children(std::vector<int> lines, const std::vector<int> &children);
  void become(uint32_t rank);

  std::unique_ptr<comm::LocalMemory> memory; // of ranks that k31-run started
  std::unique_ptr<comm::World> world_;
  std::unique_ptr<comm::Watchdog> watchdog;
  std::thread hub; // on rank 0 of a launcher
};

// The one of this process.
Ranks &ranks();

} // namespace k31::run
