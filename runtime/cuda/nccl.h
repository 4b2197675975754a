// The collectives of a plan on GPUs, through NCCL, which is opened when a plan of several ranks is bound: this runtime is built
// and starts without it.
//
// One communicator for each different group of ranks; axes with the same members share one. Graphs that hold collectives are
// destroyed before the communicators. NCCL sums in an order of its own; all ranks of a group get the same bits.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/cuda/driver.h"

namespace k31::cuda {

class Nccl {
public:
  // Every rank calls it, with its GPU's context current. The identifiers of the groups travel through the host's communicator.
  // NVLink multicast (NVLS) stays off unless NCCL_NVLS_ENABLE is set.
  static Result<std::unique_ptr<Nccl>> open(const Driver &driver, const comm::Communicator &ranks, const plan::Mesh &mesh,
                                            Stream stream);
  virtual ~Nccl() = default;

  // Puts a collective of an axis with several ranks on the stream, which may be capturing.
  virtual Result<void> issue(const plan::Collective &collective, Address source, Address dest, Stream stream) const = 0;

  // An error that a communicator has found since, such as a peer that is gone.
  virtual Result<void> check() const = 0;
};

} // namespace k31::cuda
