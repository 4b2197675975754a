// Ranks that a launcher started (mpirun, srun), over MPI.
#pragma once
#include "runtime/comm/group.h"
#include <optional>

namespace k31::comm {

// The number of processes that a launcher says it started this one with; nothing without a launcher.
std::optional<uint32_t> launched_ranks();
// This process' number among them, as the launcher says it.
uint32_t launched_rank();

// Opens the module beside the executable and starts MPI, once a process.
Result<std::unique_ptr<World>> start_mpi();

} // namespace k31::comm
