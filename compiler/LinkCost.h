// What collectives take: for choices between placements, and for what notes say about them.
#pragma once
#include "compiler/Mesh.h"
#include "dialects/Coll/Coll.h"
#include "dialects/Support/Notes.h"

namespace k31 {

enum class Exchange { allReduce, allGather, reduceScatter, allToAll };

// Ranks along the axis, and whether each of its groups lies inside one host.
int64_t sizeOf(const Mesh &mesh, coll::Axis axis);
bool insideHost(const Mesh &mesh, coll::Axis axis);

// Seconds of one collective between GPUs, under a graph. `bytes`: of the whole vector of an all-reduce, of what a rank holds
// after an all-gather and before a reduce-scatter, of all that a rank sends in an all-to-all, its own piece included.
double exchangeSeconds(Exchange exchange, coll::Transport transport, uint64_t bytes, int64_t ranks, bool oneHost);

// The same by library, between GPUs or between host ranks.
double librarySeconds(bool cuda, Exchange exchange, uint64_t bytes, int64_t ranks, bool oneHost);

// "over tp, 8 ranks of one host"
std::string groupText(const Mesh &mesh, coll::Axis axis);

// The note of a collective whose transport was chosen among `possible`: {"transport", "library", "917504 bytes over tp, 8 ranks
// of one host; WHY", the time of each that was possible}.
Note transportNote(const Mesh &mesh, coll::Axis axis, Exchange exchange, uint64_t bytes, llvm::ArrayRef<coll::Transport> possible,
                   coll::Transport chosen, llvm::StringRef why);

} // namespace k31
