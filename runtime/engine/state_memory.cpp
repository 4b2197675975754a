#include "runtime/engine/state_memory.h"
#include "runtime/base/cat.h"
#include "runtime/plan/mesh.h"
#include "runtime/schema/plan_generated.h"
#include <cstring>

namespace k31::engine {
namespace {

constexpr const char *kind_names[] = {"latent", "index", "kda", "conv", "draft"};

// The element type of a member is that of the kernels' operands which are the member's memory. Plans of format 1.0 have none.
Element element_of(const plan::Plan &plan, const plan::StateMember &member) {
  if (member.codes())
    return Element::codes;
  for (const plan::Entry *entry : *plan.entries()) {
    if (entry->stage() != member.stage())
      continue;
    for (uint32_t i = 0; i < entry->commands()->size(); ++i) {
      if (entry->commands_type()->GetEnum<plan::Command>(i) != plan::Command::Launch)
        continue;
      const plan::Launch &launch = *entry->commands()->GetAs<plan::Launch>(i);
      const auto *operands = plan.kernels()->Get(launch.kernel())->operands();
      if (!operands || operands->size() != launch.args()->size())
        continue;
      for (uint32_t a = 0; a < operands->size(); ++a) {
        const plan::Slice &slice = *launch.args()->Get(a);
        if (slice.arena() != member.arena() || slice.offset() != member.offset() || !slice.bytes())
          continue;
        const plan::DType type = operands->Get(a)->dtype();
        return type == plan::DType::f32 ? Element::f32 : type == plan::DType::bf16 ? Element::bf16 : Element::other;
      }
    }
  }
  return member.kind() == plan::StateKind::kda ? Element::f32 : Element::other;
}

// True when a value's exponent is all ones: NaN or infinity.
bool holds_non_finite(std::span<const std::byte> bytes, Element element) {
  if (element == Element::f32)
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      uint32_t bits;
      memcpy(&bits, bytes.data() + i, 4);
      if ((bits & 0x7f800000u) == 0x7f800000u)
        return true;
    }
  if (element == Element::bf16)
    for (size_t i = 0; i + 2 <= bytes.size(); i += 2) {
      uint16_t bits;
      memcpy(&bits, bytes.data() + i, 2);
      if ((bits & 0x7f80u) == 0x7f80u)
        return true;
    }
  return false;
}

// Of a block of codes the first `rows` rows. A value that is not finite makes its scale NaN.
bool block_holds_non_finite(std::span<const std::byte> block, const StateMember &m, uint32_t block_tokens, uint32_t rows) {
  if (m.kind == StateKind::index)
    return holds_non_finite(block.subspan(uint64_t(block_tokens) * m.codes, rows * 4ull), Element::f32);
  const uint64_t row_bytes = m.unit_bytes / block_tokens, scales = (m.codes + 127) / 128 * 4;
  for (uint32_t r = 0; r < rows; ++r) {
    const std::span<const std::byte> row = block.subspan(r * row_bytes, row_bytes);
    if (holds_non_finite(row.subspan(m.codes, scales), Element::f32) ||
        holds_non_finite(row.subspan(m.codes + scales), Element::bf16))
      return true;
  }
  return false;
}

uint32_t blocks_of(uint32_t position, uint32_t block_tokens) { return (position + block_tokens - 1) / block_tokens; }

} // namespace

StateLayout layout_of(const plan::Plan &plan, uint32_t rank) {
  const plan::StateGroup &group = *plan.state();
  const plan::Mesh &mesh = *plan.mesh();
  const uint32_t tp = coordinate(mesh, plan::MeshAxis::tp, rank), stage = coordinate(mesh, plan::MeshAxis::pp, rank);
  StateLayout layout{plan.key()->digest()->str(), group.block_tokens(), {}};
  if (mesh.tp() > 1 || mesh.pp() > 1)
    layout.digest += cat(" tp ", tp, " pp ", stage);
  for (const plan::StateMember *m : *group.members())
    if (m->stage() == stage) // those of other stages are offsets in other ranks' arenas
      layout.members.push_back({StateKind(m->kind()), m->layer(), element_of(plan, *m), m->arena(), m->offset(), m->unit_bytes(),
                                m->units(), m->codes()});
  return layout;
}

template <class F> Result<void> StateMemory::each_unit(const StatePlace &place, F &&f) {
  const uint32_t blocks = blocks_of(place.position, shape.block_tokens);
  if (place.slot < 0 || place.table.size() < blocks)
    return fail(Code::internal, cat("a state of ", place.position, " positions has ", place.table.size(), " blocks and slot ",
                                    place.slot, "; it is not whole"));
  for (const StateMember &member : shape.members)
    for (uint32_t i = 0; i < (member.paged() ? blocks : 1); ++i)
      K31_TRY(f(member, i, member.offset + uint64_t(member.paged() ? place.table[i] : place.slot) * member.unit_bytes));
  return {};
}

Result<void> StateMemory::copy_block(int32_t from, int32_t to) {
  for (const StateMember &m : shape.members)
    if (m.paged())
      K31_TRY(
          memory.copy(m.arena, m.offset + uint64_t(from) * m.unit_bytes, m.offset + uint64_t(to) * m.unit_bytes, m.unit_bytes));
  return {};
}

Result<void> StateMemory::fill(std::span<const int32_t> blocks, std::span<const int32_t> slots, std::byte value) {
  for (const StateMember &m : shape.members)
    for (const int32_t unit : m.paged() ? blocks : slots)
      K31_TRY(memory.fill(m.arena, m.offset + uint64_t(unit) * m.unit_bytes, m.unit_bytes, value));
  return {};
}

Result<std::string> StateMemory::non_finite(const StatePlace &place) {
  std::string found;
  uint32_t layer = UINT32_MAX; // where it begins: it spreads to later layers
  std::vector<std::byte> unit;
  const uint32_t tail = place.position % shape.block_tokens; // rows past the position are no part of the state
  const uint32_t blocks = blocks_of(place.position, shape.block_tokens);
  K31_TRY(each_unit(place, [&](const StateMember &m, uint32_t number, uint64_t offset) -> Result<void> {
    if (m.layer >= layer || m.element == Element::other)
      return {};
    const bool partial = m.paged() && tail && number + 1 == blocks;
    const uint32_t rows = partial ? tail : shape.block_tokens;
    unit.resize(partial && !m.codes ? m.unit_bytes / shape.block_tokens * tail : m.unit_bytes);
    K31_TRY(memory.read(m.arena, offset, unit));
    if (m.codes ? block_holds_non_finite(unit, m, shape.block_tokens, rows) : holds_non_finite(unit, m.element)) {
      layer = m.layer;
      found = cat(kind_names[size_t(m.kind)], " of layer ", layer);
    }
    return {};
  }));
  return found;
}

uint64_t StateMemory::bytes_of(uint32_t position) const {
  uint64_t bytes = 0;
  for (const StateMember &m : shape.members)
    bytes += m.unit_bytes * (m.paged() ? blocks_of(position, shape.block_tokens) : 1);
  return bytes;
}

Result<std::vector<std::byte>> StateMemory::read(const StatePlace &place) {
  std::vector<std::byte> bytes(bytes_of(place.position));
  uint64_t at = 0;
  K31_TRY(each_unit(place, [&](const StateMember &m, uint32_t, uint64_t offset) {
    const std::span<std::byte> to = std::span(bytes).subspan(at, m.unit_bytes);
    at += m.unit_bytes;
    return memory.read(m.arena, offset, to);
  }));
  return bytes;
}

Result<void> StateMemory::write(const StatePlace &place, std::span<const std::byte> bytes) {
  if (bytes.size() != bytes_of(place.position))
    return fail(Code::invalid_input, cat("a state of ", place.position, " positions has ", bytes_of(place.position),
                                         " bytes, found ", bytes.size(), "; it is not whole, so nothing of it is used"));
  uint64_t at = 0;
  return each_unit(place, [&](const StateMember &m, uint32_t, uint64_t offset) {
    const std::span<const std::byte> from = bytes.subspan(at, m.unit_bytes);
    at += m.unit_bytes;
    return memory.write(m.arena, offset, from);
  });
}

} // namespace k31::engine
