// select-kernels: asks each op for its kernel and writes the answer down as k31.kernel, with a note of what was compared.
#include "codegen/KernelModels.h"
#include "codegen/Target.h"
#include "compiler/Passes.h"
#include "compiler/Transforms/Fusions.h"
#include "compiler/Transforms/PlacementNotes.h"
#include "compiler/Transforms/Transports.h"
#include "dialects/Interfaces/KernelOp.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace k31 {
#define GEN_PASS_DEF_SELECTKERNELS
#include "compiler/Passes.h.inc"

namespace {

struct SelectKernels : impl::SelectKernelsBase<SelectKernels> {
  using SelectKernelsBase::SelectKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override { registerKernelModels(registry); }

  void runOnOperation() override {
    llvm::Expected<const Target *> known = Target::find(target);
    if (!known) {
      getOperation()->emitError() << llvm::toString(known.takeError());
      return signalPassFailure();
    }
    notePlacement(getOperation(), (*known)->isCuda());
    if (failed(chooseTransports(getOperation(), (*known)->isCuda())) ||
        failed(fuseSums(getOperation(), **known))) // of sums whose transport is known
      return signalPassFailure();
    fuseKDADecode(getOperation(), **known);
    Builder b(&getContext());
    // All ops are asked, so that one run shows every op without a kernel.
    getOperation()->walk([&](KernelOp op) {
      if (isByLibrary(op))
        return;
      llvm::FailureOr<KernelSpec> spec = op.selectKernel(**known);
      if (failed(spec))
        return signalPassFailure();
      NamedAttrList fields;
      fields.set("name", b.getStringAttr(spec->name));
      fields.set("config", spec->config);
      if ((*known)->isCuda()) {
        fields.set("tile", spec->tile);
        fields.set("grid", b.getDenseI32ArrayAttr(spec->grid));
        fields.set("block", b.getI64IntegerAttr(spec->block));
        fields.set("smem", b.getI64IntegerAttr(spec->smem));
        if (spec->maps) {
          fields.set("maps", spec->maps);
          fields.set("maps_at", b.getI64IntegerAttr(spec->mapsAt));
        }
      } else {
        fields.set("tasks", b.getI64IntegerAttr(spec->tasks));
      }
      fields.set("workspace", b.getI64IntegerAttr(static_cast<int64_t>(spec->workspace)));
      op->setAttr("k31.kernel", fields.getDictionary(&getContext()));
      note(op, {"kernel", spec->choice, spec->reason, spec->candidates});
    });
  }
};

} // namespace
} // namespace k31
