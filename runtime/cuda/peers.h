// The areas of the other ranks of this host in the memory of their GPUs, mapped into this process (CUDA's handles for memory of
// other processes; they travel through the host's communicator).
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/cuda/memory.h"
#include "runtime/schema/plan_generated.h"
#include <span>
#include <vector>

namespace k31::cuda {

class Peers {
public:
  // Every rank calls it, with its GPU's context current. Nothing to do for plans without collectives by peer. Refuses GPUs that
  // do not reach each other's memory.
  static Result<std::unique_ptr<Peers>> connect(const Driver &driver, const plan::Plan &plan, std::span<const Memory> arenas,
                                                const comm::Communicator &ranks, Stream stream);
  ~Peers();
  Peers(const Peers &) = delete;

  bool any() const { return !maps.empty(); }

private:
  explicit Peers(const Driver &driver) : driver(driver) {}
  Result<Address> map(uint32_t rank, uint32_t arena, const IpcHandle &handle);

  struct Mapped {
    uint32_t rank, arena;
    Address base;
  };
  const Driver &driver;
  std::vector<Mapped> maps;
};

} // namespace k31::cuda
