// The memory of sequences' states, as the plan's state group lays it out: blocks of the paged caches (latent, index), slots of
// the others (KDA matrix, convolution window). A block id and a slot id mean the same block and slot in every layer.
#pragma once
#include "runtime/arena_access.h"
#include "runtime/engine/block_manager.h"
#include <optional>
#include <string>
#include <vector>

namespace k31::plan {
struct Plan;
}

namespace k31::engine {

enum class StateKind : uint8_t { latent, index, kda, conv, draft };
enum class Element : uint8_t { f32, bf16, codes, other }; // codes: with scales; other: not looked at

// One cache of one layer.
struct StateMember {
  StateKind kind;
  uint32_t layer;
  Element element;
  uint32_t arena;
  uint64_t offset;
  uint64_t unit_bytes; // of a block, or of a slot
  uint32_t units;
  uint32_t codes = 0; // of a row (plan.fbs says where they are)

  bool paged() const { return kind == StateKind::latent || kind == StateKind::index; }
};

struct StateLayout {
  std::string digest; // of the plan, and on a mesh which part of a state it is
  uint32_t block_tokens = 0;
  std::vector<StateMember> members;
};

// Of the part that `rank` of the plan's mesh holds.
StateLayout layout_of(const plan::Plan &plan, uint32_t rank = 0);

// Where the state of one sequence is. Everything in it belongs to one boundary: the first `position` tokens.
struct StatePlace {
  const BlockTable &table; // at least the blocks of `position` positions
  int32_t slot;
  uint32_t position;
};

class StateMemory {
public:
  // `memory` outlives this.
  StateMemory(StateLayout layout, ArenaAccess &memory) : shape(std::move(layout)), memory(memory) {}

  const StateLayout &layout() const { return shape; }

  // Copies all paged caches of one block to another.
  Result<void> copy_block(int32_t from, int32_t to);

  // Fills blocks and slots: with zeros, or with 0xFF, which is NaN.
  Result<void> fill(std::span<const int32_t> blocks, std::span<const int32_t> slots, std::byte value);

  // A cache of the lowest layer that holds NaN or infinity, as "kda of layer 3"; empty when there is none. Reads the whole
  // state.
  Result<std::string> non_finite(const StatePlace &place);

  // The bytes of the state in order of the members, units one after the other; and back. A size that does not fit is refused
  // before the first byte is written.
  Result<std::vector<std::byte>> read(const StatePlace &place);
  Result<void> write(const StatePlace &place, std::span<const std::byte> bytes);
  uint64_t bytes_of(uint32_t position) const;

private:
  template <class F> Result<void> each_unit(const StatePlace &place, F &&f); // f(member, number of the unit, its offset)

  StateLayout shape;
  ArenaAccess &memory;
};

} // namespace k31::engine
