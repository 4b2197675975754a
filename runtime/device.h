// What a session needs from a device. Two kinds: the host (runtime/host) and CUDA (runtime/cuda).
//
// A device belongs to one session. Bind calls, once each and in this order: load_code, allocate, prepare, load_weights.
#pragma once
#include "runtime/arena_access.h"
#include "runtime/comm/communicator.h"
#include "runtime/plan/port.h"
#include "runtime/schema/plan_generated.h"
#include "runtime/session.h"
#include <memory>
#include <vector>

namespace k31 {

// One input or output of a run: its port, and the caller's bytes, at most as many as the port has.
struct Upload {
  const Port *port;
  std::span<const std::byte> bytes;
};
struct Download {
  const Port *port;
  std::span<std::byte> bytes;
};

// Called around each launch of an observed run; either may be empty.
struct Observers {
  Observer after, before;
  Shown shown = Shown::all;
};

class Device : public ArenaAccess {
public:
  // The plan's kernels, from the first image of each that this device can run.
  virtual Result<void> load_code(const plan::Plan &plan) = 0;
  // The arenas of the plan; with `poison` all but the weights are filled with 0xFF (NaN, or -1), else they are zero.
  virtual Result<void> allocate(const plan::Plan &plan, bool poison) = 0;
  // Every entry of this rank's stage with its addresses filled in, ready to run.
  virtual Result<void> prepare(const plan::Plan &plan) = 0;
  virtual Result<void> load_weights(const plan::Plan &plan, const BindOptions &options) = 0;

  virtual size_t entries() const = 0; // of the plan; those of other stages have no inputs, outputs or commands
  virtual const std::vector<Port> &inputs(uint32_t entry) const = 0;
  virtual const std::vector<Port> &outputs(uint32_t entry) const = 0;

  // Inputs in, all commands of the entry, outputs out. Allocates nothing.
  virtual Result<void> run(uint32_t entry, std::span<const Upload> inputs, std::span<const Download> outputs) = 0;
  // As run, one launch after the other: an error names the launch. The observers are told of each.
  virtual Result<void> run_observed(uint32_t entry, std::span<const Upload> inputs, std::span<const Download> outputs,
                                    const Observers &observers) = 0;

  // Of the last launch of an observed run, by the device's clock.
  virtual std::optional<double> launch_seconds() const { return std::nullopt; }

  // What this rank's collectives have moved so far, where that is counted; else null.
  virtual const comm::TrafficTable *traffic() const { return nullptr; }

  // The memory of an arena where the host can read and write it; else empty.
  virtual std::span<std::byte> arena(uint32_t index) { return {}; }
};

// The device that the plan is for; refuses a target that this runtime does not know, and one whose driver or hardware is missing.
// `threads`: of the host. The communicator outlives the device.
Result<std::unique_ptr<Device>> open_device(const plan::Plan &plan, int threads, comm::Communicator &communicator);

// Whether this rank runs the entry: it is of the rank's pipeline stage.
bool runs_here(const plan::Entry &entry, const comm::Communicator &communicator);

// Bytes that a collective of a group of one rank moves: there it is a copy from its source to its destination.
Result<uint64_t> lone_collective(const plan::Entry &entry, const plan::Collective &collective);

} // namespace k31
