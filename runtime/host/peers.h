// The areas of the other ranks of this host, mapped into this process.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/host/memory.h"
#include "runtime/schema/plan_generated.h"
#include <vector>

namespace k31::host {

class Peers {
public:
  // Every rank calls it, once its arenas are there. Nothing to do for plans without collectives by peer.
  Result<void> connect(const plan::Plan &plan, const std::vector<Memory> &arenas, const comm::Communicator &ranks);
  Peers() = default;
  Peers(const Peers &) = delete;
  ~Peers();

private:
  Result<std::byte *> map(int process, int file, uint64_t bytes);

  struct Mapped {
    int process, file;
    std::span<std::byte> bytes;
  };
  std::vector<Mapped> maps;
};

} // namespace k31::host
