#include "compiler/Transforms/FusedRegion.h"
#include "codegen/Operands.h"
#include "dialects/Support/Notes.h"
#include "dialects/Support/Verify.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace k31 {

FusedRegion::FusedRegion(Location loc) : loc(loc), region(std::make_unique<Region>()), block(&region->emplaceBlock()) {}

Value FusedRegion::addSum() { return block->addArgument(Float32Type::get(loc.getContext()), loc); }

Value FusedRegion::argument(Value operand) {
  Value &argument = argumentOf[operand];
  if (!argument) {
    argument = block->addArgument(Float32Type::get(loc.getContext()), loc);
    operandOf.push_back(operand);
  }
  return argument;
}

SmallVector<Value> FusedRegion::copy(Region &source, ValueRange arguments) {
  IRMapping mapping;
  mapping.map(source.front().getArguments(), arguments);
  OpBuilder builder(loc.getContext());
  builder.setInsertionPointToEnd(block);
  for (Operation &op : source.front().without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(source.front().back().getOperands(), [&](Value v) { return mapping.lookup(v); });
}

void FusedRegion::yield(ValueRange values) {
  OpBuilder builder(loc.getContext());
  builder.setInsertionPointToEnd(block);
  nn::YieldOp::create(builder, loc, values);
}

bool isRowsOfExperts(Value offsets, Value live) {
  auto view = live.getDefiningOp<nn::ColumnsOp>();
  int64_t last = cast<RankedTensorType>(offsets.getType()).getDimSize(0) - 1;
  return view && view.getSource() == offsets && static_cast<int64_t>(view.getBegin()) == last;
}

// What an op does: the names that were fused into it, or its own.
static std::string nameOf(Operation *op) {
  auto fused = op->getAttrOfType<ArrayAttr>("fused");
  std::string names;
  if (isa<nn::MapOp, nn::RowOp>(op) && fused)
    names = llvm::join(llvm::map_range(fused.getAsValueRange<StringAttr>(), [](StringRef name) { return name; }), "+");
  return names.empty() ? op->getName().getStringRef().str() : names;
}

void noteFusion(Operation *created, Operation *producer, Operation *consumer, Value between, bool alsoRead) {
  const uint64_t bytes = bytesOf(between);
  auto type = cast<RankedTensorType>(between.getType());
  std::string shape;
  llvm::raw_string_ostream(shape) << shapeText(type.getShape()) << " of " << type.getElementType();
  std::string text = llvm::formatv("the value in between, {0}, is {1}: {2} bytes", shape,
                                   alsoRead ? "stored for others and not read back" : "neither stored nor read back",
                                   alsoRead ? bytes : 2 * bytes);
  inheritNotes(created, {producer, consumer});
  note(created, {"fusion", nameOf(consumer) + " into " + nameOf(producer), text + " and a launch less", {}});
}

void noteSum(Operation *created, Operation *sum, Operation *row) {
  inheritNotes(created, {sum, row});
  const std::string reason = llvm::formatv(
      "a launch less; what a block has summed of {0} bytes goes on in it, and is stored for others", bytesOf(sum->getResult(0)));
  note(created, {"fusion", nameOf(row) + " into " + nameOf(sum), reason, {}});
}

void noteApart(Operation *consumer, Operation *producer, const Twine &why) {
  note(consumer, {"apart", nameOf(consumer) + " from " + nameOf(producer), why.str(), {}});
}

ArrayAttr joinFused(MLIRContext *context, ArrayRef<ArrayAttr> parts) {
  SmallVector<Attribute> names;
  for (ArrayAttr part : parts)
    if (part)
      llvm::append_range(names, part);
  return ArrayAttr::get(context, names);
}

} // namespace k31
