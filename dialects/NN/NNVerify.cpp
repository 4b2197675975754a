// Shapes and element types of the ops that become kernels.
#include "dialects/NN/NN.h"
#include "dialects/Support/Verify.h"

using namespace mlir;
using namespace k31;
using namespace k31::nn;

LogicalResult EmbedOp::verify() {
  auto tokens = shaped(*this, "tokens", getTokens(), "[T]");
  auto table = shaped(*this, "table", getTable(), "[V, H]");
  auto result = shaped(*this, "result", getResult(), "[T, H]");
  if (failed(tokens) || failed(table) || failed(result) || failed(isLive(*this, getLive())) ||
      failed(isElement(*this, "tokens", *tokens, IntegerType::get(getContext(), 32))) || failed(isReal(*this, "table", *table)) ||
      failed(isReal(*this, "result", *result)) ||
      failed(sameSize(*this, "rows", "result", result->getDimSize(0), "tokens", tokens->getDimSize(0))))
    return failure();
  return sameSize(*this, "columns", "result", result->getDimSize(1), "table", table->getDimSize(1));
}

LogicalResult LinearOp::verify() {
  auto x = shaped(*this, "x", getX(), "[T, K]");
  auto w = shaped(*this, "w", getW(), "[N, K]");
  if (failed(x) || failed(w) || failed(isLive(*this, getLive())) || failed(isReal(*this, "x", *x)) ||
      failed(isReal(*this, "w", *w)) || failed(sameSize(*this, "columns", "x", x->getDimSize(1), "w", w->getDimSize(1))))
    return failure();
  int64_t rows = x->getDimSize(0), n = w->getDimSize(0);
  if (getPair() && n % 32)
    return emitOpError() << "w has " << n << " rows, but pair needs a multiple of 32: groups of 16 rows of two matrices";
  int64_t cols = getPair() ? n / 2 : n;
  if (getResults().empty())
    return emitOpError() << "expected at least one result";
  const bool merged = getEpilogue().empty() && getResults().size() > 1;
  int64_t begin = 0; // column of the sums
  for (Value value : getResults()) {
    auto result = shaped(*this, "result", value, "[T, N]");
    if (failed(result) || failed(isReal(*this, "result", *result)))
      return failure();
    if (merged && begin % 16)
      return emitOpError() << "a result begins at column " << begin << " of the sums, expected a multiple of 16";
    const int64_t own = merged ? result->getDimSize(1) : cols;
    if (result->getShape() != ArrayRef<int64_t>{rows, own})
      return emitOpError() << "result has shape " << shapeText(result->getShape()) << ", expected [" << rows << ", " << own << "]"
                           << (getPair() ? " (half of w's rows: pair)" : "");
    begin += own;
  }
  if (merged && begin != n)
    return emitOpError() << "the results have " << begin << " columns together, but w has " << n << " rows";
  for (auto [i, extra] : llvm::enumerate(getExtras()))
    if (failed(isBroadcast(*this, "extra operand " + std::to_string(i), extra, rows, cols)))
      return failure();
  if (getEpilogue().empty()) {
    if (getPair() || !getExtras().empty())
      return emitOpError() << "needs an epilogue: without one there are neither pairs nor extra operands";
    return success();
  }
  return isFusedRegion(*this, getEpilogue(), (getPair() ? 2 : 1) + getExtras().size(),
                       getPair() ? "two sums, then one an extra operand" : "the sum, then one an extra operand",
                       getResults().size(), false);
}

LogicalResult HeadLinearOp::verify() {
  auto x = shaped(*this, "x", getX(), "[T, heads * head_x]");
  auto w = shaped(*this, "w", getW(), "[heads * head_rows, C]");
  auto result = shaped(*this, "result", getResult(), "[T, heads * out]");
  if (failed(x) || failed(w) || failed(result) || failed(isLive(*this, getLive())) || failed(isReal(*this, "x", *x)) ||
      failed(isReal(*this, "w", *w)) || failed(isReal(*this, "result", *result)))
    return failure();
  int64_t heads = getHeads(), begin = getRowBegin(), count = getRowCount();
  if (heads < 1)
    return emitOpError() << "expected one head or more, found " << heads;
  if (x->getDimSize(1) % heads)
    return emitOpError() << heads << " heads do not divide the " << x->getDimSize(1) << " columns of x";
  if (w->getDimSize(0) % heads)
    return emitOpError() << heads << " heads do not divide the " << w->getDimSize(0) << " rows of w";
  int64_t headX = x->getDimSize(1) / heads, headRows = w->getDimSize(0) / heads;
  if (begin < 0 || count < 1 || begin + count > headRows)
    return emitOpError() << "rows [" << begin << ", " << begin + count << ") do not lie in the " << headRows
                         << " rows of a head of w";
  int64_t in = getTransposed() ? count : w->getDimSize(1), out = getTransposed() ? w->getDimSize(1) : count;
  if (in > headX)
    return emitOpError() << "reads " << in << " values of each head of x, which has " << headX;
  if (result->getShape() != ArrayRef<int64_t>{x->getDimSize(0), heads * out})
    return emitOpError() << "result has shape " << shapeText(result->getShape()) << ", expected [" << x->getDimSize(0) << ", "
                         << heads * out << "]";
  return success();
}

// nn.map and nn.row: one shape [T, C] of all results, inputs that broadcast over it, one region argument an input.
template <typename Op> static LogicalResult verifyFused(Op op, int64_t groups, bool sums) {
  if (failed(isLive(op, op.getLive())))
    return failure();
  if (op.getResults().empty())
    return op.emitOpError() << "expected at least one result";
  auto first = shaped(op, "result", op.getResults()[0], "[T, C]");
  if (failed(first))
    return failure();
  int64_t rows = first->getDimSize(0), cols = first->getDimSize(1);
  for (Value value : op.getResults()) {
    auto result = shaped(op, "result", value, "[T, C]");
    if (failed(result) || failed(isReal(op, "result", *result)))
      return failure();
    if (result->getShape() != first->getShape())
      return op.emitOpError() << "results have shapes " << shapeText(first->getShape()) << " and "
                              << shapeText(result->getShape()) << ", expected one shape";
  }
  if (groups < 1 || cols % groups)
    return op.emitOpError() << groups << " groups do not divide the " << cols << " columns";
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    if (failed(isBroadcast(op, "input " + std::to_string(i), input, rows, cols, groups)))
      return failure();
  return isFusedRegion(op, op.getBody(), op.getInputs().size(), "one an input", op.getResults().size(), sums);
}

LogicalResult MapOp::verify() { return verifyFused(*this, 1, false); }
LogicalResult SumOp::verify() {
  StringRef parent = (*this)->getParentOp()->getName().getStringRef();
  if (parent != "nn.row" && parent != "coll.sum_row" && parent != "attn.kda_decode" && parent != "plan.kernel")
    return emitOpError() << "expects to be in a region of 'nn.row', found '" << parent << "'";
  return success();
}
LogicalResult RowOp::verify() { return verifyFused(*this, getGroups(), true); }

LogicalResult GatherOp::verify() {
  auto source = shaped(*this, "source", getSource(), "[T, C]");
  auto index = shaped(*this, "index", getIndex(), "[L]");
  auto result = shaped(*this, "result", getResult(), "[L, C]");
  if (failed(source) || failed(index) || failed(result) || failed(isLive(*this, getLive())) ||
      failed(isElement(*this, "index", *index, IntegerType::get(getContext(), 32))) ||
      failed(isElement(*this, "result", *result, source->getElementType())) ||
      failed(sameSize(*this, "rows", "result", result->getDimSize(0), "index", index->getDimSize(0))))
    return failure();
  return sameSize(*this, "columns", "result", result->getDimSize(1), "source", source->getDimSize(1));
}

LogicalResult SampleOp::verify() {
  auto logits = shaped(*this, "logits", getLogits(), "[L, V]");
  auto params = shaped(*this, "params", getParams(), "[L, 24]");
  auto result = shaped(*this, "result", getResult(), "[L]");
  Type u8 = IntegerType::get(getContext(), 8, IntegerType::Unsigned), f32 = Float32Type::get(getContext());
  if (failed(logits) || failed(params) || failed(result) || failed(isLive(*this, getLive())) ||
      failed(isElement(*this, "logits", *logits, f32)) || failed(isElement(*this, "params", *params, u8)) ||
      failed(isElement(*this, "result", *result, IntegerType::get(getContext(), 32))) ||
      failed(sameSize(*this, "rows", "params", params->getDimSize(0), "logits", logits->getDimSize(0))) ||
      failed(sameSize(*this, "rows", "result", result->getDimSize(0), "logits", logits->getDimSize(0))))
    return failure();
  if (params->getDimSize(1) != 24)
    return emitOpError() << "params has " << params->getDimSize(1)
                         << " bytes a row, expected 24 (temperature f32, top_p f32, seed u64, counter u64)";
  if (!getMask() != !getBias())
    return emitOpError() << "mask and bias come together, found only the " << (getMask() ? "mask" : "bias");
  auto optional = [&](StringRef name, Value value, Type element) -> LogicalResult {
    auto type = shaped(*this, name, value, "[L, V]");
    if (failed(type) || failed(isElement(*this, name, *type, element)))
      return failure();
    if (type->getShape() != logits->getShape())
      return emitOpError() << name << " has shape " << shapeText(type->getShape()) << ", but logits has "
                           << shapeText(logits->getShape());
    return success();
  };
  return success(!getMask() || (succeeded(optional("mask", getMask(), u8)) && succeeded(optional("bias", getBias(), f32))));
}
