// Which members of which stacks and pools the entries of each pipeline stage name.
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

int64_t to_plan::stageOf(func::FuncOp entry) {
  auto facts = entry->getAttrOfType<DictionaryAttr>("k31.entry");
  auto stage = facts ? facts.getAs<IntegerAttr>("stage") : IntegerAttr();
  return stage ? stage.getInt() : 0;
}

SmallVector<Usage> to_plan::usageOfStages(ArrayRef<func::FuncOp> entries, const llvm::StringMap<func::FuncOp> &functions) {
  SmallVector<Usage> stages(1);
  for (func::FuncOp entry : entries) {
    stages.resize(std::max<size_t>(stages.size(), stageOf(entry) + 1));
    Usage &usage = stages[stageOf(entry)];
    auto use = [&](func::FuncOp function, std::optional<int64_t> layer) {
      function.walk([&](Operation *op) {
        StringRef name;
        bool whole = false;
        if (auto weight = dyn_cast<nn::WeightOp>(op))
          name = weight.getStack(), whole = !weight.getLayer();
        else if (auto cache = dyn_cast<attn::CacheOp>(op))
          name = cache.getPool();
        else
          return;
        std::set<int64_t> &layers = usage[name];
        if (layer && !whole)
          layers.insert(*layer);
      });
    };
    use(entry, std::nullopt);
    for (auto call : entry.getOps<func::CallOp>()) {
      APInt layer;
      for (Value operand : call.getOperands())
        if (matchPattern(operand, m_ConstantInt(&layer)))
          break;
      if (auto callee = functions.find(call.getCallee()); callee != functions.end())
        use(callee->second, layer.getSExtValue());
    }
  }
  return stages;
}
