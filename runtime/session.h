// Load -> Bind -> Run: the public interface of the runtime.
//
//   Load  maps and verifies a plan. No device, no weights.
//   Bind  allocates the arenas, loads the code, streams the weights, packs the argument blocks.
//   Run   copies the inputs, executes one entry, copies the outputs. It allocates nothing.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace k31 {

namespace comm {
class Communicator;
class World;
struct TrafficTable;
} // namespace comm
namespace plan {
struct Plan;
struct Entry;
struct Launch;
} // namespace plan

class ArenaAccess;

struct BindOptions {
  std::string weights;                                         // folder of the checkpoint
  int threads = 0;                                             // host workers; 0: all cores
  bool check_launches = false;                                 // wait after each launch, so that an error names it
  bool poison = false;                                         // fill every arena but the weights with NaN bytes first (tests)
  std::optional<uint64_t> synthetic;                           // seed of made-up weights instead of a checkpoint's (timing)
  bool skewed_routing = false;                                 // synthetic: some experts are chosen most of the time
  std::function<void(uint64_t done, uint64_t total)> progress; // bytes of weights
  comm::World *world = nullptr; // of the ranks of the plan's mesh, which all bind; it outlives the session. Null: one rank
};

// Named bytes of one run. An input may be shorter than its binding: only what is live is copied.
struct NamedInput {
  const char *name;
  std::span<const std::byte> bytes;
};
struct NamedOutput {
  const char *name;
  std::span<std::byte> bytes;
};

// A launch that has just run or is about to, and the bytes of its arguments in the order of the kernel's Args. Memory is shared:
// a later launch may overwrite an output, so copy what is needed later. Rows past the live ones hold anything.
using Observer = std::function<void(const plan::Launch &launch, std::span<const std::span<const std::byte>> args)>;

// What observers see on a GPU, where arguments are copies: all but weights, or also without caches and states, which are large,
// or counts alone (i32, one column: live rows, where experts' rows begin). On the host they see the memory itself.
enum class Shown { all, activations, counts };

class Session {
public:
  static Result<std::unique_ptr<Session>> load(const std::string &plan_path);
  ~Session();

  const plan::Plan &plan() const; // the FlatBuffer, verified

  Result<void> bind(const BindOptions &options);

  // The groups of ranks that this one belongs to; null before bind.
  comm::Communicator *communicator() const;

  // Runs entry number `entry` of the plan. Bound sessions only; on a mesh every rank runs the entry of its own stage, and the
  // input `coordinates` is given to it.
  Result<void> run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs);

  // Calls the observers after and before each launch of every later run, on the thread that called run(); empty ones end that.
  // They may not call the session; memory() may be read. A run without an observer costs nothing more; one with it allocates.
  // What `before` writes to arguments that are shown, the launch reads.
  void observe(Observer after, Observer before = {}, Shown shown = Shown::all);
  // Of the launch that `after` is called for: how long it took by the device's own clock, where there is one.
  std::optional<double> launch_seconds() const;

  // What this rank's collectives have moved since bind (runtime/comm/traffic.h); null where nobody counts: on a GPU.
  const comm::TrafficTable *traffic() const;

  // The bytes of the arenas, on any device; null before bind.
  ArenaAccess *memory();

  // Direct access to the memory of an arena, for tests; empty before bind, and on a GPU.
  std::span<std::byte> arena(uint32_t index);

private:
  Session();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace k31
