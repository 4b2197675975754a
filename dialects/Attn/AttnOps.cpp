#include "dialects/Attn/Attn.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::attn;

#include "dialects/Attn/AttnDialect.cpp.inc"
#include "dialects/Attn/AttnEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Attn/AttnTypes.cpp.inc"

void AttnDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Attn/AttnTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Attn/AttnOps.cpp.inc"
      >();
  declarePromisedInterfaces<KernelOp, AppendOp, ShortConvOp, KDAOp, IndexSelectOp, AttendOp>(); // codegen attaches the models
}

mlir::LogicalResult PoolOp::verify() { return mlir::success(); }
mlir::LogicalResult AppendOp::verify() { return mlir::success(); }
mlir::LogicalResult ShortConvOp::verify() { return mlir::success(); }
mlir::LogicalResult KDAOp::verify() { return mlir::success(); }
mlir::LogicalResult IndexSelectOp::verify() { return mlir::success(); }
mlir::LogicalResult AttendOp::verify() { return mlir::success(); }

#define GET_OP_CLASSES
#include "dialects/Attn/AttnOps.cpp.inc"
