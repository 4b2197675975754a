#include "dialects/Moe/Moe.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::moe;

#include "dialects/Moe/MoeDialect.cpp.inc"

void MoeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Moe/MoeOps.cpp.inc"
      >();
  declarePromisedInterfaces<KernelOp, RouteOp, PermuteOp, GroupedLinearOp, CombineOp>(); // codegen attaches the models
}

mlir::LogicalResult RouteOp::verify() { return mlir::success(); }
mlir::LogicalResult PermuteOp::verify() { return mlir::success(); }
mlir::LogicalResult GroupedLinearOp::verify() { return mlir::success(); }
mlir::LogicalResult CombineOp::verify() { return mlir::success(); }

#define GET_OP_CLASSES
#include "dialects/Moe/MoeOps.cpp.inc"
