#include "compiler/Plan/MemoryTable.h"
#include "runtime/schema/shares.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using llvm::formatv;

namespace k31 {
namespace {

// Kinds of weights in the order of the table, by what their names hold.
enum class WeightKind { experts, attention, dense, embedding, other };
constexpr const char *kWeightNames[] = {"experts", "attention", "dense and shared MLP", "embedding and head",
                                        "norms and the rest"};

WeightKind kindOf(llvm::StringRef pattern) {
  if (pattern.contains("experts.") && !pattern.contains("shared_experts"))
    return WeightKind::experts;
  if (pattern.contains("embed_tokens") || pattern.contains("lm_head"))
    return WeightKind::embedding;
  if (pattern.contains("self_attn"))
    return WeightKind::attention;
  if (pattern.contains("mlp") || pattern.contains("shared_experts") || pattern.contains("block_sparse_moe"))
    return WeightKind::dense;
  return WeightKind::other;
}

std::string plural(uint64_t number, const char *what) { return formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s"); }

} // namespace

std::string readableBytes(uint64_t bytes) {
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  int unit = 0;
  while (value >= 1024 && unit < 4)
    value /= 1024, ++unit;
  return unit == 0 ? formatv("{0} B", bytes).str() : formatv("{0:f1} {1}", value, units[unit]).str();
}

MemoryTable memoryTable(const plan::Plan &plan, uint32_t stage) {
  MemoryTable table;
  auto add = [&](std::string name, uint64_t bytes, std::string note = "") {
    table.total += bytes;
    table.lines.push_back({std::move(name), bytes, std::move(note)});
  };

  std::map<WeightKind, uint64_t> weights;
  for (const plan::WeightStack *stack : *plan.weights()) {
    if (stack->stage() != stage)
      continue;
    const uint64_t bytes =
        stack->layout()->row_count() * stack->layout()->byte_count() * plan::held_members(*plan.mesh(), *stack);
    weights[kindOf(stack->pattern()->c_str())] += bytes;
  }
  std::map<plan::StateKind, std::pair<uint64_t, uint64_t>> state; // layers and bytes of a unit of all layers
  for (const plan::StateMember *member : *plan.state()->members()) {
    if (member->stage() != stage)
      continue;
    const bool paged = member->kind() == plan::StateKind::latent || member->kind() == plan::StateKind::index;
    auto &[layers, unit] = state[member->kind()];
    ++layers, unit += member->unit_bytes();
    (paged ? table.bytesPerToken : table.bytesPerSequence) +=
        paged ? member->unit_bytes() / plan.state()->block_tokens() : member->unit_bytes();
  }
  table.cacheTokens = uint64_t(plan.state()->blocks()) * plan.state()->block_tokens();
  table.sequences = plan.state()->slots();

  for (const plan::Arena *arena : *plan.arenas()) {
    const std::string name = arena->name()->str();
    uint64_t rest = arena->bytes();
    if (arena->kind() == plan::ArenaKind::weights) {
      for (auto [kind, bytes] : weights)
        add(std::string("weights: ") + kWeightNames[int(kind)], bytes), rest -= bytes;
      add("weights: alignment", rest,
          plan.mesh()->pp() > 1 ? "members start at multiples of 256 bytes; what the largest stage needs more"
                                : "members start at multiples of 256 bytes");
    } else if (arena->kind() == plan::ArenaKind::cache || arena->kind() == plan::ArenaKind::state) {
      const bool paged = arena->kind() == plan::ArenaKind::cache;
      (paged ? table.cache : table.state) = arena->bytes();
      for (auto [kind, sum] : state)
        if ((kind == plan::StateKind::latent || kind == plan::StateKind::index) == paged) {
          const uint64_t units = paged ? plan.state()->blocks() : plan.state()->slots(), bytes = sum.second * units;
          std::string each = paged ? formatv("{0} bytes a token", sum.second / plan.state()->block_tokens()).str()
                                   : formatv("{0} bytes a sequence", sum.second).str();
          add(name + ": " + plan::EnumNameStateKind(kind), bytes,
              formatv("{0}, {1}, {2}", each, plural(sum.first, "layer"),
                      paged ? plural(table.cacheTokens, "token") : plural(table.sequences, "slot")));
          rest -= bytes;
        }
      if (rest)
        add(name + ": alignment", rest);
    } else {
      add(name, arena->bytes());
    }
  }
  add("reserve", plan.reserve(), "kept for contexts, modules and libraries");
  return table;
}

std::string text(const MemoryTable &table, llvm::StringRef title) {
  std::string out = formatv("{0,-34}{1,16}{2,12}\n", title, "bytes", "");
  for (const MemoryLine &line : table.lines)
    out += formatv("  {0,-32}{1,16}{2,12}  {3}", line.name, line.bytes, readableBytes(line.bytes), line.note).str() + "\n";
  out += formatv("  {0,-32}{1,16}{2,12}", "total", table.total, readableBytes(table.total)).str() + "\n";
  return out;
}

std::string memoryText(const plan::Plan &plan) {
  if (plan.mesh()->pp() == 1)
    return text(memoryTable(plan));
  std::string out;
  for (uint32_t stage = 0; stage < plan.mesh()->pp(); ++stage)
    out += text(memoryTable(plan, stage), formatv("memory of one rank of stage {0}", stage).str());
  return out;
}

} // namespace k31
