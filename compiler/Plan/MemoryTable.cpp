#include "compiler/Plan/MemoryTable.h"
#include "runtime/schema/shares.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <optional>
#include <set>

using llvm::formatv;

namespace k31 {
namespace {

// Kinds of weights in the order of the table.
enum class WeightKind { attention, kda, experts, router, shared, dense, embedding, head, norms, other };
constexpr const char *kWeightNames[] = {"attention", "KDA",       "experts", "router and latent projections", "shared experts",
                                        "dense MLP", "embedding", "head",    "norms and residual mixes",      "the rest"};

// By what the names of the checkpoint hold; KDA and attention have the same names in different layers.
WeightKind kindOf(llvm::StringRef pattern) {
  for (auto [part, kind] : {std::pair("norm", WeightKind::norms),
                            {"res_proj", WeightKind::norms},
                            {"embed_tokens", WeightKind::embedding},
                            {"lm_head", WeightKind::head},
                            {"self_attn", WeightKind::attention},
                            {"shared_experts", WeightKind::shared},
                            {"experts.", WeightKind::experts},
                            {"block_sparse_moe", WeightKind::router},
                            {"mlp", WeightKind::dense}})
    if (pattern.contains(part))
      return kind;
  return WeightKind::other;
}

// The layer of a member; of a stack without numbers, the layer that its name holds.
std::optional<uint32_t> layerOf(const plan::WeightStack &stack, uint32_t member) {
  if (stack.members() && member < stack.members()->size())
    return stack.members()->Get(member);
  uint32_t layer = 0;
  llvm::StringRef rest = llvm::StringRef(stack.pattern()->c_str()).split("layers.").second;
  return rest.consumeInteger(10, layer) ? std::nullopt : std::optional(layer);
}

// Bytes of a rank of the stage, by kind.
std::map<WeightKind, uint64_t> weightBytes(const plan::Plan &plan, uint32_t stage) {
  std::set<uint32_t> kdaLayers;
  for (const plan::StateMember *member : *plan.state()->members())
    if (member->kind() == plan::StateKind::kda)
      kdaLayers.insert(member->layer());
  std::map<WeightKind, uint64_t> bytes;
  for (const plan::WeightStack *stack : *plan.weights()) {
    if (stack->stage() != stage)
      continue;
    const uint64_t member = stack->layout()->row_count() * stack->layout()->byte_count();
    const WeightKind kind = kindOf(stack->pattern()->c_str());
    for (uint32_t i = 0; i < plan::held_members(*plan.mesh(), *stack); ++i) {
      const std::optional<uint32_t> layer = kind == WeightKind::attention ? layerOf(*stack, i) : std::nullopt;
      bytes[layer && kdaLayers.contains(*layer) ? WeightKind::kda : kind] += member;
    }
  }
  return bytes;
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

  std::map<plan::StateKind, std::pair<uint64_t, uint64_t>> state; // layers and bytes of a unit of all layers
  std::set<plan::StateKind> coded;
  for (const plan::StateMember *member : *plan.state()->members()) {
    if (member->stage() != stage)
      continue;
    const bool paged = member->kind() == plan::StateKind::latent || member->kind() == plan::StateKind::index;
    auto &[layers, unit] = state[member->kind()];
    ++layers, unit += member->unit_bytes();
    if (member->codes())
      coded.insert(member->kind());
    (paged ? table.bytesPerToken : table.bytesPerSequence) +=
        paged ? member->unit_bytes() / plan.state()->block_tokens() : member->unit_bytes();
  }
  table.cacheTokens = uint64_t(plan.state()->blocks()) * plan.state()->block_tokens();
  table.sequences = plan.state()->slots();

  // Arenas of all ranks have the size that the largest stage needs.
  const bool stages = plan.mesh()->pp() > 1;
  const std::string larger = "what another stage needs more";
  for (const plan::Arena *arena : *plan.arenas()) {
    const std::string name = arena->name()->str();
    uint64_t rest = arena->bytes();
    if (arena->kind() == plan::ArenaKind::weights) {
      for (auto [kind, bytes] : weightBytes(plan, stage))
        add(std::string("weights: ") + kWeightNames[int(kind)], bytes), rest -= bytes;
      add("weights: alignment", rest, std::string("members start at multiples of 256 bytes") + (stages ? "; " + larger : ""));
    } else if (arena->kind() == plan::ArenaKind::cache || arena->kind() == plan::ArenaKind::state) {
      const bool paged = arena->kind() == plan::ArenaKind::cache;
      (paged ? table.cache : table.state) = arena->bytes();
      for (auto [kind, sum] : state)
        if ((kind == plan::StateKind::latent || kind == plan::StateKind::index) == paged) {
          const uint64_t units = paged ? plan.state()->blocks() : plan.state()->slots(), bytes = sum.second * units;
          std::string each = paged ? formatv("{0} bytes a token", sum.second / plan.state()->block_tokens()).str()
                                   : formatv("{0} bytes a sequence", sum.second).str();
          add(name + ": " + plan::EnumNameStateKind(kind), bytes,
              formatv("{0}{1}, {2}, {3}", each, coded.contains(kind) ? " in fp8" : "", plural(sum.first, "layer"),
                      paged ? plural(table.cacheTokens, "token") : plural(table.sequences, "slot")));
          rest -= bytes;
        }
      if (rest)
        add(name + ": alignment", rest, stages ? larger : "");
    } else {
      add(name, arena->bytes(), arena->kind() == plan::ArenaKind::shared ? "what ranks of a host write to each other" : "");
    }
  }
  add("reserve", plan.reserve(),
      plan.key()->target()->string_view() == "cpu"                    ? "the rest: code, threads, buffers of the loader"
      : plan.mesh()->tp() * plan.mesh()->dp() * plan.mesh()->pp() > 1 ? "the rest: context, modules, graphs, NCCL"
                                                                      : "the rest: context, modules, graphs");
  return table;
}

std::string text(const MemoryTable &table, llvm::StringRef title) {
  std::string out = formatv("{0,-40}{1,16}\n", title, "bytes");
  for (const MemoryLine &line : table.lines)
    out += formatv("  {0,-38}{1,16}{2,12}{3}{4}\n", line.name, line.bytes, readableBytes(line.bytes),
                   line.note.empty() ? "" : "  ", line.note);
  out += formatv("  {0,-38}{1,16}{2,12}\n", "total", table.total, readableBytes(table.total));
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
