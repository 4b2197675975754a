// compile-kernels: machine code for every plan.kernel: one image a processor level, or one a CUDA kernel.
#include "codegen/CudaBackend.h"
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

// Of kernels::OperandKind, in its order.
constexpr StringLiteral kKindNames[] = {"element", "row_scalar", "column", "column_group"};

// An element of an array: element types and kinds of operands by name, others as they are.
std::string elementText(StringRef field, int32_t value) {
  ArrayRef<StringLiteral> names;
  if (field.ends_with("type"))
    names = kDTypeNames;
  else if (field.ends_with("kind"))
    names = kKindNames;
  const auto at = static_cast<size_t>(value);
  return at < names.size() ? names[at].str() : std::to_string(value);
}

// "rows = 8, x_type = bf16, kind = [element, column], row.cols = 16": the Config for people.
std::string textOf(DictionaryAttr config, const std::string &prefix = "") {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(config, stream, [&](NamedAttribute field) {
    if (auto inner = dyn_cast<DictionaryAttr>(field.getValue())) {
      stream << textOf(inner, prefix + field.getName().str() + ".");
      return;
    }
    stream << prefix << field.getName().getValue() << " = ";
    if (auto number = dyn_cast<IntegerAttr>(field.getValue()))
      stream << number.getValue();
    else if (auto name = dyn_cast<StringAttr>(field.getValue()))
      stream << name.getValue();
    else if (auto values = dyn_cast<DenseI32ArrayAttr>(field.getValue()))
      stream << '['
             << llvm::join(llvm::map_range(values.asArrayRef(), [&](int32_t v) { return elementText(field.getName(), v); }), ", ")
             << ']';
    else
      stream << llvm::format("%.6g", cast<FloatAttr>(field.getValue()).getValueAsDouble());
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
    if (!ops.empty() && failed((*known)->isCuda() ? compileCuda(ops, **known) : compileHost(ops, **known)))
      return signalPassFailure();
  }

private:
  struct Spec {
    StringAttr name;
    DictionaryAttr config, tile;
    SmallVector<Region *, 1> regions;
  };

  FailureOr<Spec> read(planir::KernelOp op, bool cuda) {
    DictionaryAttr spec = op.getSpecAttr();
    Spec read{spec.getAs<StringAttr>("name"), spec.getAs<DictionaryAttr>("config"), spec.getAs<DictionaryAttr>("tile"),
              regionsOf(op)};
    if (!read.name || !read.config || (cuda && !read.tile))
      return op.emitOpError("needs a spec with a name")
             << (cuda ? ", a config and a tile; found " : " and a config; found ") << spec;
    return read;
  }

  // For the command line, which knows it by its location.
  void reportReuse(int compiled, int cached) {
    if (!cache.empty())
      emitRemark(NameLoc::get(StringAttr::get(&getContext(), "kernels")))
          << cached << " of " << compiled + cached << " pieces of machine code reused from " << cache.getValue();
  }

  // The same kernel with its code, without spec and regions.
  void finish(planir::KernelOp op, StringRef symbol, ArrayAttr images) {
    std::string text = textOf(op.getSpecAttr().getAs<DictionaryAttr>("config"));
    if (auto tile = op.getSpecAttr().getAs<DictionaryAttr>("tile"); tile && !tile.empty())
      text += "; " + textOf(tile);
    OpBuilder b(op);
    planir::KernelOp::create(b, op.getLoc(), op.getSymName(), op.getName(), symbol, images, text, DictionaryAttr(),
                             op.getArgTypesAttr(),
                             /*starts_early=*/op.getSpecAttr().contains("tile"), /*bodiesCount=*/0); // all of CUDA do
    op.erase();
  }

  Attribute declare(OpBuilder &b, Location loc, StringRef symbol, StringRef target, ArrayRef<StringRef> features,
                    StringRef code) {
    return FlatSymbolRefAttr::get(planir::ImageOp::create(b, loc, symbol, target, b.getStrArrayAttr(features), code));
  }

  // One plan.image a level in front of the kernels, best first.
  LogicalResult compileHost(MutableArrayRef<planir::KernelOp> ops, const Target &target) {
    std::vector<HostKernel> kernels;
    SmallVector<std::string> only(levels.begin(), levels.end());
    for (planir::KernelOp op : ops) {
      FailureOr<Spec> spec = read(op, /*cuda=*/false);
      if (failed(spec))
        return failure();
      FailureOr<SmallVector<int32_t>> words = kernelConfigWords(spec->name, spec->config, [&] { return op.emitOpError(); });
      if (failed(words))
        return failure();
      kernels.push_back({op.getLoc(), spec->name.getValue(), std::move(*words), spec->regions, {}});
    }
    HostCompileStats stats;
    FailureOr<std::vector<HostImage>> images = compileHostKernels(kernels, target, cache, &stats, only);
    if (failed(images))
      return failure();
    reportReuse(stats.compiled, stats.cached);
    OpBuilder b(ops.front());
    SmallVector<Attribute> references;
    for (const HostImage &image : *images) {
      SmallVector<StringRef> features(image.level->required.begin(), image.level->required.end());
      references.push_back(declare(b, ops.front().getLoc(), image.level->name, image.level->name, features, image.code));
    }
    for (auto [op, kernel] : llvm::zip(ops, kernels))
      finish(op, kernel.symbol, b.getArrayAttr(references));
    return success();
  }

  // One plan.image a kernel, named as its symbol.
  LogicalResult compileCuda(MutableArrayRef<planir::KernelOp> ops, const Target &target) {
    std::vector<CudaKernel> kernels;
    for (planir::KernelOp op : ops) {
      FailureOr<Spec> spec = read(op, /*cuda=*/true);
      if (failed(spec))
        return failure();
      kernels.push_back({op.getLoc(), spec->name.getValue(), spec->config, spec->tile, spec->regions, {}});
    }
    CudaCompileStats stats;
    FailureOr<std::vector<CudaImage>> images = compileCudaKernels(kernels, target, cache, &stats);
    if (failed(images))
      return failure();
    reportReuse(stats.compiled, stats.cached);
    OpBuilder b(ops.front());
    llvm::StringMap<Attribute> references;
    for (const CudaImage &image : *images)
      references[image.symbol] = declare(b, ops.front().getLoc(), image.symbol, target.name(), {}, image.code);
    for (auto [op, kernel] : llvm::zip(ops, kernels))
      finish(op, kernel.symbol, b.getArrayAttr({references[kernel.symbol]}));
    return success();
  }
};

} // namespace
} // namespace k31
