// What the engine needs of a plan and of the machine that runs it. The session is one such machine; tests bring their own.
#pragma once
#include "runtime/engine/state_memory.h"
#include "runtime/session.h"
#include <optional>

namespace k31::engine {

struct EntryFacts {
  std::string name;
  bool decode = false;
  uint32_t rows = 0;       // T, capacity in tokens
  uint32_t segments = 0;   // S, capacity in sequences
  uint32_t logit_rows = 0; // L
  bool mask = false;       // has the optional inputs of sampling
  bool bias = false;
};

struct ModelFacts {
  uint32_t vocab = 0;        // V
  uint32_t max_context = 0;  // positions of one sequence
  uint32_t block_tokens = 0; // positions of one block
  uint32_t table_blocks = 0; // B, blocks of one sequence
  uint32_t blocks = 0;       // of the pool
  uint32_t slots = 0;
  std::vector<int32_t> eos;
  uint32_t depth = 1; // runs that may be under way at once: each pipeline stage works on another one
  std::vector<EntryFacts> entries;
};

class Executor {
public:
  virtual ~Executor() = default;
  virtual const ModelFacts &facts() const = 0;
  // What all dp groups run in the next step, given what this one would: nothing when none of them has anything to run. Called
  // once a step, with the entry that comes out of it run by all.
  virtual Result<std::optional<uint32_t>> agree(std::optional<uint32_t> entry) { return entry; }
  // The memory of the states; bound sessions only.
  virtual StateMemory &state() = 0;
  // As StateMemory::non_finite, of the whole state: all ranks that hold a part of it call this together, and all of them find a
  // value that is not finite, or none does, or all fail.
  virtual Result<std::string> non_finite(const StatePlace &place) { return state().non_finite(place); }
  // A state is restored by all ranks that hold a part of it, or by none. They call this together, each with the
  // position of its own part or the reason why it has none; it fails on all of them unless all have the same position.
  virtual Result<uint32_t> agree_position(Result<uint32_t> position) { return position; }
  // Inputs and outputs by name as runtime/schema/README.md says; only live rows are given, but for `row_segment`. A run with
  // outputs is followed by fetch() for the same outputs, in the order of the runs and before more than `depth` of them wait for
  // it: until then the outputs hold anything. The memory of states is as after the run at once.
  virtual Result<void> run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) = 0;
  virtual Result<void> fetch(std::span<const NamedOutput> outputs) { return {}; }
};

} // namespace k31::engine
