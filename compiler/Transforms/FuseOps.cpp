// fuse-ops: elementwise and row-wise work moves into the ops next to it; see Fusions.h.
#include "compiler/Passes.h"
#include "compiler/Transforms/Fusions.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Moe/Moe.h"
#include "dialects/NN/NN.h"
#include "mlir/Transforms/RegionUtils.h"

namespace k31 {
#define GEN_PASS_DEF_FUSEOPS
#include "compiler/Passes.h.inc"

namespace {

struct FuseOps : impl::FuseOpsBase<FuseOps> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    // Pairs first: they need the map over both halves as it was written. Epilogues next: there the value in between is never
    // stored.
    pairProducts(module);
    fuseEpilogues(module);
    fuseRows(module);
    // Last: a map that a product takes as its epilogue saves more than a neighbour.
    mergeProducts(module);
    // Views and counts that only the fused maps read.
    mlir::IRRewriter rewriter(&getContext());
    (void)mlir::runRegionDCE(rewriter, module->getRegions());
  }
};

} // namespace
} // namespace k31
