// The ops around coll.dispatch and coll.combine: rows go to the ranks of their experts, results come back.
#include "dialects/Coll/Coll.h"
#include "dialects/Support/Verify.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace k31::coll;

int64_t k31::coll::pieceBytes(int64_t rows, int64_t columns, Type element, int64_t choices) {
  const int64_t row = 8 * choices + columns * (element.getIntOrFloatBitWidth() / 8);
  return 16 + rows * ((row + 15) / 16 * 16);
}

LogicalResult OwnRowsOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType()), live = cast<RankedTensorType>(adaptor.getLive().getType()),
       coordinate = cast<RankedTensorType>(adaptor.getCoordinate().getType());
  const auto one = RankedTensorType::get({1}, IntegerType::get(context, 32));
  const int64_t size = adaptor.getSize();
  if (size < 1)
    return emitOptionalError(location, "expected a size of 1 or more ranks, found ", size);
  if (x.getRank() != 2 || live != one || coordinate != one)
    return emitOptionalError(location, "expected x [T, N] and one i32 as live and coordinate, found ", x, ", ", live, " and ",
                             coordinate);
  if (x.getDimSize(0) % size)
    return emitOptionalError(location, size, " ranks do not divide the ", x.getDimSize(0), " rows");
  types.push_back(x.clone({x.getDimSize(0) / size, x.getDimSize(1)}));
  types.push_back(one);
  return success();
}

static LogicalResult inferExchange(std::optional<Location> location, Type x, Type live, int64_t size, int64_t unit,
                                   SmallVectorImpl<Type> &types) {
  auto pieces = cast<RankedTensorType>(x), counts = cast<RankedTensorType>(live);
  if (size < 1 || unit < 1)
    return emitOptionalError(location, "expected a size and a unit of 1 or more, found ", size, " and ", unit);
  if (pieces.getRank() != 2 || pieces.getDimSize(0) % size)
    return emitOptionalError(location, "expected pieces for ", size, " ranks, found ", pieces);
  if (!counts.getElementType().isInteger(32) || counts.getShape() != ArrayRef(size))
    return emitOptionalError(location, "expected live i32 [", size, "], found ", counts);
  types.push_back(pieces);
  return success();
}
LogicalResult DispatchOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  return inferExchange(location, adaptor.getX().getType(), adaptor.getLive().getType(), adaptor.getSize(), adaptor.getUnit(),
                       types);
}
LogicalResult CombineOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferExchange(location, adaptor.getX().getType(), adaptor.getLive().getType(), adaptor.getSize(), adaptor.getUnit(),
                       types);
}

// Pieces of `size` ranks with `rows` rows of `values` and their choices each.
static LogicalResult verifyPieces(Operation *op, RankedTensorType pieces, int64_t size, int64_t rows, RankedTensorType values,
                                  int64_t choices) {
  const int64_t bytes = pieceBytes(rows, values.getDimSize(1), values.getElementType(), choices);
  if (!pieces.getElementType().isUnsignedInteger(8) || pieces.getShape() != ArrayRef({size, bytes}))
    return op->emitOpError() << "pieces is " << pieces << ", expected ui8 [" << size << ", " << bytes << "]: " << rows
                             << " rows of " << values.getDimSize(1) << " values and " << choices << " choices";
  return success();
}

LogicalResult PackOp::verify() {
  auto x = k31::shaped(*this, "x", getX(), "[T, C]"), ids = k31::shaped(*this, "ids", getIds(), "[T, k]"),
       weights = k31::shaped(*this, "weights", getWeights(), "[T, k]"), live = k31::shaped(*this, "live", getLive(), "[G]");
  auto pieces = k31::shaped(*this, "pieces", getPieces(), "[size, bytes]"),
       units = k31::shaped(*this, "units", getUnits(), "[size]"), slot = k31::shaped(*this, "slot", getSlot(), "[T, size]");
  Type i32 = IntegerType::get(getContext(), 32);
  if (failed(x) || failed(ids) || failed(weights) || failed(live) || failed(pieces) || failed(units) || failed(slot) ||
      failed(k31::isReal(*this, "x", *x)) || failed(k31::isElement(*this, "ids", *ids, i32)) ||
      failed(k31::isElement(*this, "weights", *weights, Float32Type::get(getContext()))) ||
      failed(k31::isElement(*this, "live", *live, i32)) || failed(k31::isElement(*this, "units", *units, i32)) ||
      failed(k31::isElement(*this, "slot", *slot, i32)) ||
      failed(k31::sameSize(*this, "rows", "x", x->getDimSize(0), "ids", ids->getDimSize(0))) ||
      failed(k31::sameSize(*this, "rows", "x", x->getDimSize(0), "weights", weights->getDimSize(0))) ||
      failed(k31::sameSize(*this, "choices", "ids", ids->getDimSize(1), "weights", weights->getDimSize(1))) ||
      failed(k31::sameSize(*this, "rows", "x", x->getDimSize(0), "slot", slot->getDimSize(0))))
    return failure();
  const int64_t size = getSize(), share = getShare();
  if (size < 1 || share < 1)
    return emitOpError() << "expected a size and a share of 1 or more, found " << size << " and " << share;
  if (units->getDimSize(0) != size || slot->getDimSize(1) != size)
    return emitOpError() << "units and slot are for " << units->getDimSize(0) << " and " << slot->getDimSize(1)
                         << " ranks, expected " << size;
  return verifyPieces(*this, *pieces, size, x->getDimSize(0), *x, ids->getDimSize(1));
}

LogicalResult UnpackOp::verify() {
  auto pieces = k31::shaped(*this, "pieces", getPieces(), "[size, bytes]"),
       rows = k31::shaped(*this, "rows", getRows(), "[size T, C]"), ids = k31::shaped(*this, "ids", getIds(), "[size T, k]"),
       weights = k31::shaped(*this, "weights", getWeights(), "[size T, k]"),
       live = k31::shaped(*this, "live", getLive(), "[size]");
  Type i32 = IntegerType::get(getContext(), 32);
  if (failed(pieces) || failed(rows) || failed(ids) || failed(weights) || failed(live) ||
      failed(k31::isReal(*this, "rows", *rows)) || failed(k31::isElement(*this, "ids", *ids, i32)) ||
      failed(k31::isElement(*this, "weights", *weights, Float32Type::get(getContext()))) ||
      failed(k31::isElement(*this, "live", *live, i32)) ||
      failed(k31::sameSize(*this, "rows", "rows", rows->getDimSize(0), "ids", ids->getDimSize(0))) ||
      failed(k31::sameSize(*this, "rows", "rows", rows->getDimSize(0), "weights", weights->getDimSize(0))) ||
      failed(k31::sameSize(*this, "choices", "ids", ids->getDimSize(1), "weights", weights->getDimSize(1))))
    return failure();
  const int64_t size = live->getDimSize(0);
  if (size < 1 || rows->getDimSize(0) % size)
    return emitOpError() << "has " << rows->getDimSize(0) << " rows of " << size << " ranks, which do not divide them";
  return verifyPieces(*this, *pieces, size, rows->getDimSize(0) / size, *rows, ids->getDimSize(1));
}
