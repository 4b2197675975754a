#include "codegen/Regions.h"
#include "codegen/ExpandMath.h"
#include "codegen/kernels/common/region.h"
#include "codegen/kernels/common/row_operand.h"
#include "codegen/kernels/nn/row.h"
#include "dialects/NN/NN.h"
#include "dialects/Support/Verify.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace k31 {

SmallVector<Region *, 1> regionsOf(Operation *op) {
  return llvm::to_vector<1>(
      llvm::make_pointer_range(llvm::make_filter_range(op->getRegions(), [](Region &region) { return !region.empty(); })));
}

int RegionPhases::totalSums() const {
  int total = 0;
  for (const auto &phase : sums)
    total += static_cast<int>(phase.size());
  return total;
}

static InFlightDiagnostic refuse(Region &region) { return emitError(region.getLoc(), "the fused region "); }

bool RegionPhases::fits() const { return count() <= kernels::row::kMaxPhases && totalSums() <= kernels::row::kMaxSums; }

RegionPhases findPhases(Region &region) {
  RegionPhases phases;
  DenseMap<Value, unsigned> depth;
  for (Operation &op : region.front().without_terminator()) {
    unsigned d = 0;
    for (Value operand : op.getOperands())
      d = std::max(d, depth.lookup(operand));
    if (isa<nn::SumOp>(op)) {
      if (phases.sums.size() <= d)
        phases.sums.resize(d + 1);
      phases.sums[d].push_back(&op);
      ++d;
    }
    for (Value result : op.getResults())
      depth[result] = d;
  }
  return phases;
}

FailureOr<RegionPhases> analyzeRegion(Region &region) {
  if (!region.hasOneBlock() || region.front().empty() || !isa<nn::YieldOp>(region.front().back()))
    return refuse(region) << "must be one block that ends in nn.yield";
  Block &block = region.front();
  // With `pair` two sums come before the extra operands.
  if (block.getNumArguments() > kernels::kMaxOperands + 2)
    return refuse(region) << "has " << block.getNumArguments() << " arguments; a kernel takes " << kernels::kMaxOperands;
  if (block.back().getNumOperands() > kernels::kMaxOperands)
    return refuse(region) << "yields " << block.back().getNumOperands() << " values; a kernel stores " << kernels::kMaxOperands;
  for (Operation &op : block.without_terminator())
    if (!isa<nn::SumOp>(op) && !isScalarMath(op))
      return op.emitOpError("cannot be in a fused region: it is not an elementwise op on scalars");
  RegionPhases phases = findPhases(region);
  if (phases.count() > kernels::row::kMaxPhases)
    return refuse(region) << "has sums of depth " << phases.count() << "; a kernel runs " << kernels::row::kMaxPhases
                          << " phases";
  if (phases.totalSums() > kernels::row::kMaxSums)
    return refuse(region) << "has " << phases.totalSums() << " sums; a kernel holds " << kernels::row::kMaxSums;
  return phases;
}

SmallVector<RegionFunction> splitRegion(Region &region, const RegionPhases &phases) {
  Block &block = region.front();
  SmallVector<RegionFunction> functions;
  SmallVector<Value> inputs(block.getArguments().begin(), block.getArguments().end());
  for (const auto &sums : phases.sums) {
    RegionFunction &function = functions.emplace_back();
    function.inputs = inputs;
    for (Operation *sum : sums) {
      function.outputs.push_back(sum->getOperand(0));
      inputs.push_back(sum->getResult(0));
    }
  }
  functions.push_back({inputs, SmallVector<Value>(block.back().getOperands())});
  return functions;
}

namespace {

// Writes one function of the region: values become vectors of 16.
class FunctionWriter {
public:
  FunctionWriter(OpBuilder &b, Location loc, StringRef name) : b(b), loc(loc) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, pointer});
    function = LLVM::LLVMFuncOp::create(b, loc, name, type);
    Block *entry = function.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    in = entry->getArgument(0), out = entry->getArgument(1);
  }

  // `value` is element `index` of the input.
  void bindInput(Value value, int index) { inputs[value] = index; }

  LogicalResult store(Value value, int index) {
    FailureOr<Value> lanes = get(value);
    if (failed(lanes))
      return failure();
    LLVM::StoreOp::create(b, loc, *lanes, address(out, index), /*alignment=*/4);
    return success();
  }

  void finish() {
    LLVM::ReturnOp::create(b, loc, ValueRange{});
    b.setInsertionPointAfter(function);
  }

private:
  static VectorType lanesOf(Type scalar) { return VectorType::get({kLanes}, scalar); }

  Value address(Value base, int index) {
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    return LLVM::GEPOp::create(b, loc, pointer, b.getF32Type(), base, ArrayRef<LLVM::GEPArg>{int32_t(index * kLanes)});
  }

  FailureOr<Value> get(Value value) {
    if (Value known = values.lookup(value))
      return known;
    if (auto it = inputs.find(value); it != inputs.end())
      return values[value] = LLVM::LoadOp::create(b, loc, lanesOf(b.getF32Type()), address(in, it->second), /*alignment=*/4);
    Operation *op = value.getDefiningOp();
    Attribute constant;
    if (matchPattern(op, m_Constant(&constant)))
      return values[value] =
                 arith::ConstantOp::create(b, op->getLoc(), DenseElementsAttr::get(lanesOf(value.getType()), constant))
                     .getResult();
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands()) {
      FailureOr<Value> lanes = get(operand);
      if (failed(lanes))
        return failure();
      state.addOperands(*lanes);
    }
    for (Type type : op->getResultTypes()) {
      if (!type.isIntOrFloat())
        return op->emitOpError("cannot be in a fused region: ") << type << " is not a number";
      state.addTypes(lanesOf(type));
    }
    state.addAttributes(op->getAttrs());
    Operation *copy = b.create(state);
    for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
      values[from] = to;
    return values[value];
  }

  OpBuilder &b;
  Location loc;
  LLVM::LLVMFuncOp function;
  Value in, out;
  DenseMap<Value, int> inputs;
  DenseMap<Value, Value> values;
};

} // namespace

// Appends the functions of a region, the first of them with the number `next`, which becomes that of the next region's first.
static LogicalResult buildFunctions(Region &region, OpBuilder &b, int &next) {
  FailureOr<RegionPhases> phases = analyzeRegion(region);
  if (failed(phases))
    return failure();
  for (const RegionFunction &function : splitRegion(region, *phases)) {
    FunctionWriter writer(b, region.getLoc(), "k31_region_" + std::to_string(next++));
    for (auto [i, value] : llvm::enumerate(function.inputs))
      writer.bindInput(value, static_cast<int>(i));
    for (auto [i, value] : llvm::enumerate(function.outputs))
      if (failed(writer.store(value, static_cast<int>(i))))
        return failure();
    writer.finish();
  }
  return success();
}

static LogicalResult convertToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  if (failed(expandMath(module)))
    return failure();
  LLVMTypeConverter types(context);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  return applyFullConversion(module, target, std::move(patterns));
}

std::unique_ptr<llvm::Module> lowerRegions(ArrayRef<Region *> regions, llvm::LLVMContext &context) {
  OwningOpRef<ModuleOp> module(ModuleOp::create(regions.front()->getLoc()));
  OpBuilder b(module->getBodyRegion());
  int next = 0;
  for (Region *region : regions)
    if (failed(buildFunctions(*region, b, next)))
      return nullptr;
  if (failed(convertToLLVM(*module)))
    return nullptr;
  return translateModuleToLLVMIR(*module, context, "region");
}

void registerRegionDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, nn::NNDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

} // namespace k31
