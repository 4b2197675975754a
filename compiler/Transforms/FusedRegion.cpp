#include "compiler/Transforms/FusedRegion.h"

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

ArrayAttr joinFused(MLIRContext *context, ArrayRef<ArrayAttr> parts) {
  SmallVector<Attribute> names;
  for (ArrayAttr part : parts)
    if (part)
      llvm::append_range(names, part);
  return ArrayAttr::get(context, names);
}

} // namespace k31
