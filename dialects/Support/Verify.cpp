#include "dialects/Support/Verify.h"
#include "dialects/NN/NN.h"

using namespace mlir;

std::string k31::shapeText(ArrayRef<int64_t> shape) {
  std::string out = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    out += (i ? ", " : "") + (ShapedType::isDynamic(size) ? "?" : std::to_string(size));
  return out + "]";
}

FailureOr<RankedTensorType> k31::shaped(Operation *op, StringRef name, Value value, StringRef dims) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == static_cast<int64_t>(dims.count(',')) + 1 && type.hasStaticShape())
    return type;
  return op->emitOpError() << name << " is " << type << ", expected " << dims << " of static size";
}

LogicalResult k31::sameSize(Operation *op, StringRef what, StringRef a, int64_t sizeA, StringRef b, int64_t sizeB) {
  if (sizeA == sizeB)
    return success();
  return op->emitOpError() << a << " has " << sizeA << " " << what << ", but " << b << " has " << sizeB << " " << what;
}

LogicalResult k31::isReal(Operation *op, StringRef name, RankedTensorType type) {
  Type element = type.getElementType();
  if (element.isF32() || element.isBF16())
    return success();
  return op->emitOpError() << name << " holds " << element << ", expected bf16 or f32";
}

LogicalResult k31::isElement(Operation *op, StringRef name, RankedTensorType type, Type expected) {
  if (type.getElementType() == expected)
    return success();
  return op->emitOpError() << name << " holds " << type.getElementType() << ", expected " << expected;
}

LogicalResult k31::isLive(Operation *op, Value live) {
  auto type = cast<ShapedType>(live.getType());
  if (type.hasRank() && type.getShape() == ArrayRef<int64_t>{1} && type.getElementType().isInteger(32))
    return success();
  return op->emitOpError() << "live is " << live.getType() << ", expected tensor<1xi32>";
}

std::optional<k31::Broadcast> k31::broadcastOf(RankedTensorType operand, int64_t rows, int64_t cols, int64_t groups) {
  ArrayRef<int64_t> shape = operand.getShape();
  if (shape.size() == 2 && shape[0] == rows && (shape[1] == cols || shape[1] == 1))
    return shape[1] == cols ? Broadcast::element : Broadcast::row;
  if (shape.size() != 1 || shape[0] < 1)
    return std::nullopt;
  if (shape[0] == cols || (groups > 1 && shape[0] * groups == cols))
    return Broadcast::column;
  return cols % shape[0] ? std::nullopt : std::optional(Broadcast::columns);
}

LogicalResult k31::isBroadcast(Operation *op, StringRef name, Value operand, int64_t rows, int64_t cols, int64_t groups) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (failed(isReal(op, name, type)))
    return failure();
  if (broadcastOf(type, rows, cols, groups))
    return success();
  auto error = op->emitOpError() << name << " has shape " << shapeText(type.getShape()) << ", which does not broadcast over ["
                                 << rows << ", " << cols << "]: expected [T, C], [T, 1], [C]";
  if (groups > 1)
    error << ", [C / groups]";
  return error << " or [G] with G dividing C";
}

bool k31::isScalarMath(Operation &op) {
  StringRef dialect = op.getDialect() ? op.getDialect()->getNamespace() : "";
  return (dialect == "arith" || dialect == "math") &&
         (OpTrait::hasElementwiseMappableTraits(&op) || op.hasTrait<OpTrait::ConstantLike>());
}

LogicalResult k31::isFusedRegion(Operation *op, Region &region, size_t arguments, StringRef argumentText, size_t results,
                                 bool sums) {
  if (!region.hasOneBlock())
    return op->emitOpError() << "expected a region of one block";
  Block &block = region.front();
  if (block.getNumArguments() != arguments)
    return op->emitOpError() << "region has " << block.getNumArguments() << " arguments, expected " << arguments << " ("
                             << argumentText << ")";
  for (BlockArgument argument : block.getArguments())
    if (!argument.getType().isF32())
      return op->emitOpError() << "argument " << argument.getArgNumber() << " of the region is " << argument.getType()
                               << ", expected f32";
  auto yield = block.empty() ? nullptr : dyn_cast<nn::YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << "expected the region to end with nn.yield";
  if (yield.getValues().size() != results)
    return yield.emitOpError() << "yields " << yield.getValues().size() << " values, expected " << results
                               << ", one a result of '" << op->getName() << "'";
  for (Operation &inner : block) {
    bool known = isScalarMath(inner) || isa<nn::YieldOp>(inner);
    if (!known && !(sums && isa<nn::SumOp>(inner)))
      return inner.emitOpError() << "cannot be in a region of '" << op->getName() << "': expected arith and math ops on scalars"
                                 << (sums ? " and nn.sum" : "");
    for (Value operand : inner.getOperands())
      if (operand.getParentRegion() != &region)
        return inner.emitOpError() << "uses a value from outside of the region of '" << op->getName()
                                   << "': pass it as an operand of the op";
  }
  return success();
}

LogicalResult k31::isRowOn(Operation *op, StringRef made, int64_t at, ValueRange inputs, int64_t rows, int64_t cols,
                           int64_t groups, Region &body, size_t results) {
  if (results == 0)
    return op->emitOpError() << "expected at least one result behind " << made;
  if (at < 0 || at > static_cast<int64_t>(inputs.size()))
    return op->emitOpError() << made << " is argument " << at << " of the region, expected 0 to " << inputs.size();
  for (auto [i, input] : llvm::enumerate(inputs))
    if (failed(isBroadcast(op, "input " + std::to_string(i), input, rows, cols, groups)))
      return failure();
  return isFusedRegion(op, body, inputs.size() + 1, ("one an input, and " + made).str(), results, true);
}
