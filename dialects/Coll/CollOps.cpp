#include "dialects/Coll/Coll.h"
#include "dialects/Support/KeepConstants.h"
#include "dialects/Support/Verify.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::coll;

#include "dialects/Coll/CollDialect.cpp.inc"
#include "dialects/Coll/CollEnums.cpp.inc"

void CollDialect::initialize() {
  addInterfaces<k31::KeepConstants>();
  addOperations<
#define GET_OP_LIST
#include "dialects/Coll/CollOps.cpp.inc"
      >();
  // Codegen attaches the models. Collectives have a kernel when they go by peer.
  declarePromisedInterfaces<k31::KernelOp, JoinOp, PartOp, OwnRowsOp, PackOp, UnpackOp, AllReduceOp, ReduceScatterOp, AllGatherOp,
                            DispatchOp, CombineOp, SumRowOp>();
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
  if (type.getRank() != 1 && type.getRank() != 2)
    return emitOptionalError(location, "expected rows [T, C] or elements [T], found ", type);
  if (type.getDimSize(0) % over)
    return emitOptionalError(location, over, " ranks do not divide the ", type.getDimSize(0), " rows");
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = shape[0] * times / over;
  types.push_back(type.clone(shape));
  return success();
}
LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), 1, 1, types);
}
LogicalResult ReduceScatterOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), 1, adaptor.getSize(), types);
}
LogicalResult AllGatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), adaptor.getSize(), 1, types);
}
LogicalResult BroadcastOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  return inferRows(location, adaptor.getX().getType(), adaptor.getSize(), 1, 1, types);
}

template <typename Op> static LogicalResult verifySize(Op op) {
  int64_t size = op.getSize();
  if (size < 1)
    return op.emitOpError() << "expected a size of 1 or more ranks, found " << size;
  return success();
}

LogicalResult JoinOp::verify() {
  auto x = k31::shaped(*this, "x", getX(), "[size T, C]"), result = k31::shaped(*this, "result", getResult(), "[T, N]");
  if (failed(x) || failed(result) || failed(verifySize(*this)) || failed(k31::isLive(*this, getLive())) ||
      failed(k31::isElement(*this, "result", *result, x->getElementType())))
    return failure();
  int64_t size = getSize(), part = x->getDimSize(1), columns = result->getDimSize(1);
  if (x->getDimSize(0) != size * result->getDimSize(0))
    return emitOpError() << "x has " << x->getDimSize(0) << " rows, expected " << size << " times the " << result->getDimSize(0)
                         << " of the result";
  if (columns > size * part || columns <= (size - 1) * part)
    return emitOpError() << "result has " << columns << " columns, expected more than " << (size - 1) * part << " and at most "
                         << size * part << ": " << size << " parts of " << part;
  return success();
}

LogicalResult PartOp::verify() {
  auto x = k31::shaped(*this, "x", getX(), "[T, N]"), result = k31::shaped(*this, "result", getResult(), "[T, C]");
  auto coordinate = k31::shaped(*this, "coordinate", getCoordinate(), "[1]");
  if (failed(x) || failed(result) || failed(coordinate) || failed(k31::isLive(*this, getLive())) ||
      failed(k31::isElement(*this, "coordinate", *coordinate, IntegerType::get(getContext(), 32))) ||
      failed(k31::isElement(*this, "result", *result, x->getElementType())) ||
      failed(k31::sameSize(*this, "rows", "result", result->getDimSize(0), "x", x->getDimSize(0))))
    return failure();
  if (coordinate->getDimSize(0) != 1)
    return emitOpError() << "coordinate has " << coordinate->getDimSize(0) << " numbers, expected one";
  if (result->getDimSize(1) > x->getDimSize(1))
    return emitOpError() << "a part has " << result->getDimSize(1) << " columns, but x has " << x->getDimSize(1);
  return success();
}

static LogicalResult verifyPeer(Operation *op, int64_t peer, Value rows) {
  if (peer < 0)
    return op->emitOpError() << "expected a coordinate of 0 or more as peer, found " << peer;
  return failure(failed(k31::shaped(op, "rows", rows, "[T, C]")));
}
LogicalResult SendOp::verify() { return verifyPeer(*this, getPeer(), getX()); }
LogicalResult RecvOp::verify() { return verifyPeer(*this, getPeer(), getResult()); }

#define GET_OP_CLASSES
#include "dialects/Coll/CollOps.cpp.inc"
