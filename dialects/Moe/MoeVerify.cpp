// Shapes of routing, grouping and the experts' products.
#include "dialects/Moe/Moe.h"
#include "dialects/Support/Verify.h"

using namespace mlir;
using namespace k31;
using namespace k31::moe;

static Type i32(Operation *op) { return IntegerType::get(op->getContext(), 32); }
static Type f32(Operation *op) { return Float32Type::get(op->getContext()); }

// One count for all rows, or one for each of several groups of equal capacity: rows of several ranks.
static LogicalResult isGroupedLive(Operation *op, Value live, int64_t rows) {
  auto type = shaped(op, "live", live, "[groups]");
  if (failed(type))
    return failure();
  const int64_t groups = type->getDimSize(0);
  if (groups >= 1 && rows % groups == 0)
    return success();
  return op->emitOpError() << "live has " << groups << " counts, which do not divide the " << rows << " rows";
}

LogicalResult RouteOp::verify() {
  auto logits = shaped(*this, "logits", getLogits(), "[T, E]");
  auto bias = shaped(*this, "bias", getBias(), "[E]");
  if (failed(logits) || failed(bias) || failed(isLive(*this, getLive())) ||
      failed(isElement(*this, "logits", *logits, f32(*this))) || failed(isReal(*this, "bias", *bias)) ||
      failed(sameSize(*this, "experts", "logits", logits->getDimSize(1), "bias", bias->getDimSize(0))))
    return failure();
  if (static_cast<int64_t>(getTopK()) > logits->getDimSize(1))
    return emitOpError() << "top_k is " << getTopK() << ", but there are " << logits->getDimSize(1) << " experts";
  return success();
}

LogicalResult PermuteOp::verify() {
  auto x = shaped(*this, "x", getX(), "[T, C]");
  auto ids = shaped(*this, "ids", getIds(), "[T, k]");
  if (failed(x) || failed(ids) || failed(isGroupedLive(*this, getLive(), x->getDimSize(0))) || failed(isReal(*this, "x", *x)) ||
      failed(isElement(*this, "ids", *ids, i32(*this))) ||
      failed(sameSize(*this, "rows", "x", x->getDimSize(0), "ids", ids->getDimSize(0))))
    return failure();
  if (static_cast<int64_t>(getFirst()) < 0)
    return emitOpError() << "the first local expert is " << static_cast<int64_t>(getFirst()) << ", expected 0 or more";
  if (!getCoordinate())
    return success();
  auto coordinate = shaped(*this, "coordinate", getCoordinate(), "[1]");
  if (failed(coordinate) || failed(isElement(*this, "coordinate", *coordinate, i32(*this))))
    return failure();
  if (coordinate->getDimSize(0) != 1 || getFirst() != 0)
    return emitOpError() << "a coordinate is one number that says which experts are local, so first must be 0, found "
                         << coordinate->getDimSize(0) << " numbers and first " << getFirst();
  return success();
}

// MXFP4 codes with one scale for 32 neighbouring columns, or bf16 or fp32 without scales.
static LogicalResult verifyWeights(GroupedLinearOp op, RankedTensorType w) {
  if (!isa<Float4E2M1FNType>(w.getElementType())) {
    if (op.getScale())
      return op.emitOpError() << "has scales, but w holds " << w.getElementType() << ", expected f4E2M1FN";
    return isReal(op, "w", w);
  }
  if (!op.getScale())
    return op.emitOpError() << "w holds f4E2M1FN, so it needs scales";
  auto scale = shaped(op, "scale", op.getScale(), "[E, N, K / 32]");
  if (failed(scale) || failed(isElement(op, "scale", *scale, Float8E8M0FNUType::get(op.getContext()))))
    return failure();
  int64_t experts = w.getDimSize(0), n = w.getDimSize(1), k = w.getDimSize(2);
  if (k % 32 || scale->getShape() != ArrayRef<int64_t>{experts, n, k / 32})
    return op.emitOpError() << "scale has shape " << shapeText(scale->getShape()) << ", expected one scale for 32 columns of w, "
                            << shapeText(w.getShape());
  return success();
}

LogicalResult GroupedLinearOp::verify() {
  auto x = shaped(*this, "x", getX(), "[R, K]");
  auto w = shaped(*this, "w", getW(), "[E, N, K]");
  auto offsets = shaped(*this, "offsets", getOffsets(), "[E + 1]");
  auto result = shaped(*this, "result", getResult(), "[R, N]");
  if (failed(x) || failed(w) || failed(offsets) || failed(result) || failed(isReal(*this, "x", *x)) ||
      failed(isReal(*this, "result", *result)) || failed(isElement(*this, "offsets", *offsets, i32(*this))) ||
      failed(sameSize(*this, "columns", "x", x->getDimSize(1), "w", w->getDimSize(2))) || failed(verifyWeights(*this, *w)))
    return failure();
  int64_t experts = w->getDimSize(0), n = w->getDimSize(1);
  if (offsets->getDimSize(0) != experts + 1)
    return emitOpError() << "has " << offsets->getDimSize(0) << " offsets, expected " << experts + 1 << " (experts + 1)";
  if (getPair() && n % 32)
    return emitOpError() << "an expert of w has " << n
                         << " rows, but pair needs a multiple of 32: groups of 16 rows of two matrices";
  int64_t cols = getPair() ? n / 2 : n;
  if (result->getShape() != ArrayRef<int64_t>{x->getDimSize(0), cols})
    return emitOpError() << "result has shape " << shapeText(result->getShape()) << ", expected [" << x->getDimSize(0) << ", "
                         << cols << "]" << (getPair() ? " (half of an expert's rows: pair)" : "");
  if (getEpilogue().empty()) {
    if (getPair())
      return emitOpError() << "needs an epilogue that joins the two sums of a pair";
    return success();
  }
  return isFusedRegion(*this, getEpilogue(), getPair() ? 2 : 1, getPair() ? "two sums" : "the sum", 1, false);
}

LogicalResult CombineOp::verify() {
  auto x = shaped(*this, "x", getX(), "[R, C]");
  auto slot = shaped(*this, "slot", getSlot(), "[T, k]");
  auto result = shaped(*this, "result", getResult(), "[T, C]");
  if (failed(x) || failed(slot) || failed(result) || failed(isGroupedLive(*this, getLive(), result->getDimSize(0))) ||
      failed(isReal(*this, "x", *x)) || failed(isElement(*this, "slot", *slot, i32(*this))) ||
      failed(isReal(*this, "result", *result)))
    return failure();
  if (getWeights()) {
    auto weights = shaped(*this, "weights", getWeights(), "[T, k]");
    if (failed(weights) || failed(isElement(*this, "weights", *weights, f32(*this))))
      return failure();
    if (weights->getShape() != slot->getShape())
      return emitOpError() << "weights has shape " << shapeText(weights->getShape()) << ", but slot has shape "
                           << shapeText(slot->getShape());
  }
  if (x->getDimSize(0) != slot->getNumElements())
    return emitOpError() << "x has " << x->getDimSize(0) << " rows, expected " << slot->getNumElements()
                         << " (tokens times choices)";
  if (failed(sameSize(*this, "rows", "result", result->getDimSize(0), "slot", slot->getDimSize(0))))
    return failure();
  return sameSize(*this, "columns", "result", result->getDimSize(1), "x", x->getDimSize(1));
}
