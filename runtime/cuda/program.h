// One entry on the GPU: its commands as a CUDA graph, captured once and replayed by every run.
#pragma once
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/nccl.h"
#include "runtime/plan/port.h"
#include <functional>
#include <span>

namespace k31::cuda {

class Program {
public:
  // `streams` are shared by all entries; the first one is the stream of the runs. `nccl`: null for one rank.
  Program(const Driver &driver, const plan::Plan &plan, const plan::Entry &entry, const Kernels &kernels,
          std::span<const Memory> arenas, std::span<const Stream> streams, const comm::Communicator &ranks, const Nccl *nccl);
  Program(const Program &) = delete;
  ~Program();

  Result<void> capture();

  // Starts the graph on the first stream.
  Result<void> replay() const;
  // Issues the commands one by one on the first stream and waits after each launch, so that a fault has a name. `begin` and `end`
  // are recorded around each launch.
  using Step = std::function<Result<void>(const plan::Launch &)>;
  Result<void> step(const Step &before, const Step &after, Event begin, Event end) const;

  std::vector<Port> inputs, outputs;

private:
  Address address(uint32_t arena, uint64_t offset) const { return arenas[arena].address() + offset; }
  Address address(const plan::Slice &slice) const { return address(slice.arena(), slice.offset()); }
  std::string where(const flatbuffers::String *label) const;
  std::vector<Port> ports(const flatbuffers::Vector<flatbuffers::Offset<plan::Binding>> &bindings) const;

  // Makes every other stream start after the first one, or the first one end after all others.
  Result<void> fork() const;
  Result<void> join() const;
  Result<void> issue() const;
  // `behind_launch`: the command before it on the stream is a launch, which it may overlap when its kernel waits by itself.
  Result<void> issue(const plan::Launch &launch, Stream stream, bool behind_launch) const;
  // Encodes a tensor map of the launch to `to`. An address that the copy engine cannot take leaves zeros: the kernel has another
  // way for it.
  Result<void> encode(const plan::Launch &launch, const plan::TensorMap &map, void *to) const;
  Result<void> issue(const plan::Collective &collective, Stream stream, bool behind_launch) const;
  // Of one rank of a mesh without the others, as comm::AloneGroup has it, but sums are this rank's addends.
  Result<void> issue_alone(const plan::Collective &collective, const comm::Group &group, Stream stream) const;
  Result<void> copy(const plan::Slice &source, const plan::Slice &dest, uint64_t bytes, const flatbuffers::String *label,
                    Stream stream) const;

  const Driver &driver;
  const plan::Plan &plan;
  const plan::Entry &entry;
  const Kernels &kernels;
  std::span<const Memory> arenas;
  std::span<const Stream> streams; // as many as the entry has, at least
  const comm::Communicator &ranks;
  const Nccl *nccl;
  std::vector<Event> events; // the plan's; then one to fork, and one a stream to join
  GraphExec graph = nullptr;
};

} // namespace k31::cuda
