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

template <typename Op> static OpFoldResult foldAlone(Op op) {
  return op.getSize() == 1 ? OpFoldResult(op.getX()) : OpFoldResult();
}
OpFoldResult AllReduceOp::fold(FoldAdaptor) { return foldAlone(*this); }
OpFoldResult ReduceScatterOp::fold(FoldAdaptor) { return foldAlone(*this); }
OpFoldResult AllGatherOp::fold(FoldAdaptor) { return foldAlone(*this); }
OpFoldResult BroadcastOp::fold(FoldAdaptor) { return foldAlone(*this); }

static LogicalResult inferRows(std::optional<Location> location, Type operand, int64_t size, int64_t times, int64_t over,
                               SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(operand);
  if (size < 1)
    return emitOptionalError(location, "expected a size of 1 or more ranks, found ", size);
  if (type.getRank() != 2)
    return emitOptionalError(location, "expected rows [T, C], found ", type);
  if (type.getDimSize(0) % over)
    return emitOptionalError(location, over, " ranks do not divide the ", type.getDimSize(0), " rows");
  types.push_back(type.clone({type.getDimSize(0) * times / over, type.getDimSize(1)}));
  return success();
}
LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), 1, 1, types);
}
LogicalResult ReduceScatterOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), 1, adaptor.getSize(), types);
}
LogicalResult AllGatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), adaptor.getSize(), 1, types);
}
LogicalResult BroadcastOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), 1, 1, types);
}

mlir::LogicalResult DispatchOp::verify() { return mlir::success(); }
mlir::LogicalResult CombineOp::verify() { return mlir::success(); }
mlir::LogicalResult SendOp::verify() { return mlir::success(); }
mlir::LogicalResult RecvOp::verify() { return mlir::success(); }

#define GET_OP_CLASSES
#include "dialects/Coll/CollOps.cpp.inc"
