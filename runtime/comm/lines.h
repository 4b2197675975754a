// How the ranks of a launcher get their lines to the hub in rank 0: over TCP, to the address that rank 0 shares through MPI.
#pragma once
#include "runtime/comm/group.h"

namespace k31::comm {

struct Lines {
  int mine = -1;        // to the hub
  std::vector<int> hub; // on rank 0: of every rank
};

Result<Lines> connect_lines(const World &world, Group &all);

} // namespace k31::comm
