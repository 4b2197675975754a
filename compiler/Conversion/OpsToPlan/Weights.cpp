// The weights arena: members of a stack follow each other. Those of the stacks of a merged stack share its members' rows.
#include "compiler/Conversion/OpsToPlan/StackWeights.h"
#include "compiler/Sizes.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

std::optional<int64_t> Place::offsetOf(std::optional<int64_t> layer) const {
  if (members.empty())
    return begin;
  if (!layer)
    return std::nullopt;
  auto found = llvm::find(members, *layer);
  if (found == members.end())
    return std::nullopt;
  return begin + stride * (found - members.begin());
}

namespace {

// Stacks whose members lie one behind the other: one, or those of a merged stack.
struct Run {
  SmallVector<nn::StackOp> stacks;
  nn::MergedStackOp merged;

  // Layers by what names the run; nothing when no entry does.
  std::optional<std::set<int64_t>> usedBy(const Usage &usage) {
    std::optional<std::set<int64_t>> layers;
    auto add = [&](StringRef name) {
      if (auto used = usage.find(name); used != usage.end()) {
        layers = layers.value_or(std::set<int64_t>());
        layers->insert(used->second.begin(), used->second.end());
      }
    };
    for (nn::StackOp stack : stacks)
      add(stack.getSymName());
    if (merged)
      add(merged.getSymName());
    return layers;
  }
  int64_t memberBytes() {
    int64_t bytes = 0;
    for (nn::StackOp stack : stacks)
      bytes += byteSize(cast<RankedTensorType>(stack.getType()));
    return bytes;
  }
};

SmallVector<Run> runsOf(ModuleOp module, SymbolTable &symbols) {
  DenseMap<Operation *, nn::MergedStackOp> mergedOf;
  for (auto merged : module.getOps<nn::MergedStackOp>())
    for (auto name : merged.getStacks().getAsRange<FlatSymbolRefAttr>())
      mergedOf[symbols.lookup(name.getValue())] = merged;
  SmallVector<Run> runs;
  DenseMap<Operation *, size_t> known; // by the merged stack
  for (auto stack : module.getOps<nn::StackOp>()) {
    nn::MergedStackOp merged = mergedOf.lookup(stack);
    if (!merged) {
      runs.push_back({{stack}, merged});
    } else if (known.try_emplace(merged, runs.size()).second) {
      Run &run = runs.emplace_back();
      run.merged = merged;
      for (auto name : merged.getStacks().getAsRange<FlatSymbolRefAttr>())
        run.stacks.push_back(symbols.lookup<nn::StackOp>(name.getValue()));
    }
  }
  return runs;
}

} // namespace

FailureOr<int64_t> to_plan::buildWeights(ModuleOp module, OpBuilder &builder, ArrayRef<Usage> stages,
                                         SmallVectorImpl<Places> &places) {
  SymbolTable symbols(module);
  SmallVector<Run> runs = runsOf(module, symbols);
  int64_t bytes = 0;
  for (auto [stage, usage] : llvm::enumerate(stages)) {
    Places &own = places.emplace_back();
    int64_t end = 0;
    for (Run &run : runs) {
      const std::optional<std::set<int64_t>> used = run.usedBy(usage);
      if (!used)
        continue;
      const bool all = stages.size() == 1; // what the model has, whatever the entries name
      const int64_t stride = aligned(run.memberBytes());
      int64_t rows = 0;
      Place first;
      for (nn::StackOp stack : run.stacks) {
        FailureOr<Place> place =
            buildStack(stack, symbols, builder, stage, all ? std::set<int64_t>() : *used, {end, stride, rows});
        if (failed(place))
          return failure();
        if (!rows)
          first = *place;
        rows += place->type.getDimSize(0);
        own[stack.getSymName()] = std::move(*place);
      }
      if (run.merged) {
        Place &whole = own[run.merged.getSymName()] = first;
        whole.type = cast<RankedTensorType>(run.merged.getType());
      }
      end += stride * std::max<int64_t>(first.members.size(), 1);
    }
    bytes = std::max(bytes, end);
  }
  return bytes;
}
