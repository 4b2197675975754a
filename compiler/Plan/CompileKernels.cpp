// compile-kernels: machine code for every plan.kernel, one image a processor level.
#include "codegen/HostBackend.h"
#include "codegen/KernelTable.h"
#include "codegen/Regions.h"
#include "codegen/Target.h"
#include "compiler/Passes.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace k31 {
#define GEN_PASS_DEF_COMPILEKERNELS
#include "compiler/Passes.h.inc"

namespace {

// "rows = 8, x_type = bf16": the Config for people.
std::string textOf(DictionaryAttr config) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(config, stream, [&](NamedAttribute field) {
    stream << field.getName().getValue() << " = ";
    if (auto number = dyn_cast<IntegerAttr>(field.getValue()))
      stream << number.getValue();
    else if (auto name = dyn_cast<StringAttr>(field.getValue()))
      stream << name.getValue();
    else if (auto values = dyn_cast<DenseI32ArrayAttr>(field.getValue()))
      stream << '[' << llvm::join(llvm::map_range(values.asArrayRef(), [](int32_t v) { return std::to_string(v); }), ", ") << ']';
    else
      stream << llvm::formatv("{0:g}", cast<FloatAttr>(field.getValue()).getValueAsDouble());
  });
  return text;
}

struct CompileKernels : impl::CompileKernelsBase<CompileKernels> {
  using CompileKernelsBase::CompileKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override { registerRegionDialects(registry); }

  void runOnOperation() override {
    llvm::Expected<const Target *> known = Target::find(target);
    if (!known) {
      getOperation()->emitError() << llvm::toString(known.takeError());
      return signalPassFailure();
    }
    SmallVector<planir::KernelOp> ops;
    for (auto op : getOperation().getOps<planir::KernelOp>())
      if (op.getSpec()) // one that has its code already is left alone
        ops.push_back(op);
    std::vector<HostKernel> kernels;
    SmallVector<std::string> only(levels.begin(), levels.end());
    for (planir::KernelOp op : ops) {
      FailureOr<HostKernel> kernel = read(op);
      if (failed(kernel))
        return signalPassFailure();
      kernels.push_back(std::move(*kernel));
    }
    FailureOr<std::vector<HostImage>> images = compileHostKernels(kernels, **known, cache, nullptr, only);
    if (failed(images))
      return signalPassFailure();
    ArrayAttr references = declare(*images, ops);
    for (auto [op, kernel] : llvm::zip(ops, kernels)) {
      op.setConfig(textOf(op.getSpecAttr().getAs<DictionaryAttr>("config")));
      op.setSymbol(kernel.symbol);
      op.setImagesAttr(references);
      op.removeSpecAttr();
      op.getBody().getBlocks().clear();
    }
  }

private:
  FailureOr<HostKernel> read(planir::KernelOp op) {
    auto name = op.getSpecAttr().getAs<StringAttr>("name");
    auto config = op.getSpecAttr().getAs<DictionaryAttr>("config");
    if (!name || !config)
      return op.emitOpError("needs a spec with a name and a config; found ") << op.getSpecAttr();
    FailureOr<SmallVector<int32_t>> words = kernelConfigWords(name, config, [&] { return op.emitOpError(); });
    if (failed(words))
      return failure();
    return HostKernel{op.getLoc(), name.getValue(), std::move(*words), op.getBody().empty() ? nullptr : &op.getBody(), {}};
  }

  // One plan.image a level in front of the kernels; returns their names, best first.
  ArrayAttr declare(ArrayRef<HostImage> images, MutableArrayRef<planir::KernelOp> ops) {
    SmallVector<Attribute> references;
    if (images.empty())
      return ArrayAttr::get(&getContext(), references);
    OpBuilder b(ops.front());
    for (const HostImage &image : images) {
      SmallVector<StringRef> features(image.level->required.begin(), image.level->required.end());
      auto op = planir::ImageOp::create(b, ops.front().getLoc(), image.level->name, image.level->name,
                                        b.getStrArrayAttr(features), image.code);
      references.push_back(FlatSymbolRefAttr::get(op));
    }
    return ArrayAttr::get(&getContext(), references);
  }
};

} // namespace
} // namespace k31
