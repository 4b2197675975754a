// Pipeline stages: which ops of @text belong to which, and what crosses the border in front of a stage.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace k31 {

// Stage p of `stages` calls layers [p n / stages, (p + 1) n / stages) of the n that @text calls; the embedding belongs to the
// first, the last mix and the head to the last.
class StageCuts {
public:
  StageCuts(mlir::func::FuncOp text, int64_t stages);

  int64_t stageOf(mlir::Operation *op) const { return stages.lookup(op); }
  // Rows of the residual stream that earlier stages make and this one or a later one reads: the bank of blocks, then the prefix.
  llvm::ArrayRef<mlir::Value> crossing(int64_t stage) const { return borders[stage]; }

private:
  llvm::DenseMap<mlir::Operation *, int64_t> stages;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> borders;
};

} // namespace k31
