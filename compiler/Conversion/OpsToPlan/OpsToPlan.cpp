// convert-ops-to-plan: the values of level 2 become buffers, its ops launches. Entries are written out layer by layer, since each
// layer's launches name other bytes; kernels stay shared.
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "compiler/Passes.h"

namespace k31 {
#define GEN_PASS_DEF_CONVERTOPSTOPLAN
#include "compiler/Passes.h.inc"
} // namespace k31

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

namespace {

void buildArena(OpBuilder &builder, StringRef name, planir::ArenaKind kind, int64_t bytes) {
  planir::ArenaOp::create(builder, builder.getUnknownLoc(), name, kind, bytes);
}

struct ConvertOpsToPlanPass : k31::impl::ConvertOpsToPlanBase<ConvertOpsToPlanPass> {
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<planir::PlanDialect>(); }

  void runOnOperation() override {
    if (failed(convert(getOperation())))
      signalPassFailure();
  }

  LogicalResult convert(ModuleOp module) {
    // Symbols of both levels may be equal ("weights"), so look-ups go by tables made before the first plan op.
    Context context;
    SmallVector<Operation *> old;
    SmallVector<func::FuncOp> entries;
    for (Operation &op : *module.getBody()) {
      old.push_back(&op);
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function)
        continue;
      context.functions[function.getSymName()] = function;
      if (function->hasAttr("k31.entry"))
        entries.push_back(function);
    }
    if (entries.empty())
      return module.emitError(
          "no function has the attribute k31.entry, so there is nothing to plan; run convert-k31-to-ops first");

    auto builder = OpBuilder::atBlockEnd(module.getBody());
    if (failed(buildFacts(module, builder)))
      return failure();
    Operation *facts = &module.getBody()->back();
    SmallVector<Usage> stages = usageOfStages(entries, context.functions);
    FailureOr<int64_t> weights = buildWeights(module, builder, stages, context.weights);
    if (failed(weights))
      return failure();
    FailureOr<StateBytes> state = buildState(module, builder, stages, context.pools);
    if (failed(state))
      return failure();
    OpBuilder arenas(facts->getContext());
    arenas.setInsertionPointAfter(facts);
    buildArena(arenas, "weights", planir::ArenaKind::weights, *weights);
    buildArena(arenas, "cache", planir::ArenaKind::cache, state->paged);
    buildArena(arenas, "state", planir::ArenaKind::state, state->slotted);
    for (auto [name, kind] : {std::pair("activations", planir::ArenaKind::activations), std::pair("io", planir::ArenaKind::io),
                              std::pair("workspace", planir::ArenaKind::workspace)})
      buildArena(arenas, name, kind, 0); // assign-memory sets the bytes

    Operation *declared = &module.getBody()->back(); // kernels and notes stand before the entries that name them
    Kernels kernels(declared);
    Notes notes(declared);
    context.kernels = &kernels, context.notes = &notes;
    for (func::FuncOp entry : entries)
      if (failed(buildEntry(entry, builder, context)))
        return failure();
    if (context.areas.bytes() > 0)
      buildArena(arenas, "shared", planir::ArenaKind::shared, context.areas.bytes());
    for (Operation *op : old)
      op->erase();
    for (StringRef name : {"k31.model", "k31.checkpoint", "k31.options", "k31.mesh"})
      module->removeDiscardableAttr(name);
    return success();
  }
};

} // namespace
