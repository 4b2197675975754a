// nn.map and nn.row as passes see them, and where an op made of one and its producer can stand.
#pragma once
#include "codegen/Operands.h"
#include "dialects/NN/NN.h"

namespace k31 {

// What nn.map and nn.row have in common.
struct Rowwise {
  mlir::Operation *op = nullptr;
  mlir::Value live;
  mlir::ValueRange inputs;
  mlir::ArrayAttr fused;
  int64_t groups = 1;
  mlir::Region *body = nullptr;
  bool isRow = false;

  static Rowwise of(mlir::Operation *op) {
    if (auto map = llvm::dyn_cast_or_null<nn::MapOp>(op))
      return {op, map.getLive(), map.getInputs(), map.getFusedAttr(), 1, &map.getBody(), false};
    if (auto row = llvm::dyn_cast_or_null<nn::RowOp>(op))
      return {op,  row.getLive(), row.getInputs(), row.getFusedAttr(), static_cast<int64_t>(row.getGroups()), &row.getBody(),
              true};
    return {};
  }
  llvm::ArrayRef<int64_t> shape() const { return llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType()).getShape(); }
  // Its operands without `made`, which a fused kernel makes by itself, and the number that this one has.
  std::pair<llvm::SmallVector<mlir::Value>, int64_t> inputsBut(mlir::Value made) const {
    llvm::SmallVector<mlir::Value> others(inputs);
    const auto at = llvm::find(others, made) - others.begin();
    others.erase(others.begin() + at);
    return {others, at};
  }
  // Its operands broadcast the same way when it runs in `count` groups.
  bool runsIn(int64_t count) const {
    return llvm::all_of(inputs, [&](mlir::Value input) {
      auto type = llvm::cast<mlir::RankedTensorType>(input.getType());
      return operandKind(type, shape()[0], shape()[1], groups) == operandKind(type, shape()[0], shape()[1], count);
    });
  }
};

// Where the fused op can stand: at the consumer when nobody reads the producer before it, else at the producer when the
// consumer's other operands are known there.
inline mlir::Operation *placeOf(mlir::Operation *producer, const Rowwise &consumer) {
  mlir::Block *block = consumer.op->getBlock();
  bool readBefore = llvm::any_of(producer->getUsers(), [&](mlir::Operation *user) {
    mlir::Operation *inBlock = block->findAncestorOpInBlock(*user);
    return !inBlock || inBlock->isBeforeInBlock(consumer.op);
  });
  if (!readBefore)
    return consumer.op;
  bool knownBefore = llvm::all_of(consumer.inputs, [&](mlir::Value input) {
    mlir::Operation *definition = input.getDefiningOp();
    return !definition || definition == producer || definition->getBlock() != block || definition->isBeforeInBlock(producer);
  });
  return knownBefore ? producer : nullptr;
}

} // namespace k31
