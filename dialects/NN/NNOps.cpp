#include "dialects/NN/NN.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::nn;

#include "dialects/NN/NNDialect.cpp.inc"

void NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/NN/NNOps.cpp.inc"
      >();
  declarePromisedInterfaces<KernelOp, EmbedOp, LinearOp, HeadLinearOp, MapOp, RowOp, GatherOp, SampleOp>(); // codegen attaches the models
}

mlir::LogicalResult TensorOp::verify() { return mlir::success(); }
mlir::LogicalResult StackOp::verify() { return mlir::success(); }
mlir::LogicalResult ColumnsOp::verify() { return mlir::success(); }
mlir::LogicalResult EmbedOp::verify() { return mlir::success(); }
mlir::LogicalResult LinearOp::verify() { return mlir::success(); }
mlir::LogicalResult HeadLinearOp::verify() { return mlir::success(); }
mlir::LogicalResult MapOp::verify() { return mlir::success(); }
mlir::LogicalResult RowOp::verify() { return mlir::success(); }
mlir::LogicalResult SumOp::verify() { return mlir::success(); }
mlir::LogicalResult GatherOp::verify() { return mlir::success(); }
mlir::LogicalResult SampleOp::verify() { return mlir::success(); }

#define GET_OP_CLASSES
#include "dialects/NN/NNOps.cpp.inc"
