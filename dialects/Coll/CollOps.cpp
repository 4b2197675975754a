#include "dialects/Coll/Coll.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::coll;

#include "dialects/Coll/CollDialect.cpp.inc"
#include "dialects/Coll/CollEnums.cpp.inc"

void CollDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Coll/CollOps.cpp.inc"
      >();
}

mlir::LogicalResult AllReduceOp::verify() { return mlir::success(); }
mlir::LogicalResult ReduceScatterOp::verify() { return mlir::success(); }
mlir::LogicalResult AllGatherOp::verify() { return mlir::success(); }
mlir::LogicalResult BroadcastOp::verify() { return mlir::success(); }
mlir::LogicalResult DispatchOp::verify() { return mlir::success(); }
mlir::LogicalResult CombineOp::verify() { return mlir::success(); }
mlir::LogicalResult SendOp::verify() { return mlir::success(); }
mlir::LogicalResult RecvOp::verify() { return mlir::success(); }

#define GET_OP_CLASSES
#include "dialects/Coll/CollOps.cpp.inc"
