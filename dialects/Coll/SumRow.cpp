// coll.sum_row: a sum over the ranks and the row op on it.
#include "dialects/Coll/Coll.h"
#include "dialects/Support/Verify.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace k31::coll;

SmallVector<Value> SumRowOp::rowInputs() {
  SmallVector<Value> all(getInputs());
  all.insert(all.begin() + static_cast<int64_t>(getAt()), getSum());
  return all;
}

LogicalResult SumRowOp::verify() {
  auto x = k31::shaped(*this, "x", getX(), "[T, C]"), sum = k31::shaped(*this, "sum", getSum(), "[T, C]");
  if (failed(x) || failed(sum) || failed(k31::isLive(*this, getLive())) || failed(k31::isReal(*this, "x", *x)) ||
      failed(k31::isElement(*this, "sum", *sum, x->getElementType())))
    return failure();
  const int64_t size = getSize(), rows = sum->getDimSize(0), cols = sum->getDimSize(1), groups = getGroups();
  if (size < 1)
    return emitOpError() << "expected a size of 1 or more ranks, found " << size;
  if (x->getDimSize(0) != rows * (getScatter() ? size : 1) || x->getDimSize(1) != cols)
    return emitOpError() << "sum has shape " << k31::shapeText(sum->getShape()) << ", x " << k31::shapeText(x->getShape())
                         << "; expected " << (getScatter() ? "a share of its rows" : "the same");
  for (Value value : getResults()) {
    auto result = k31::shaped(*this, "result", value, "[T, C]");
    if (failed(result) || failed(k31::isReal(*this, "result", *result)))
      return failure();
    if (result->getShape() != sum->getShape())
      return emitOpError() << "a result has shape " << k31::shapeText(result->getShape()) << ", the sum "
                           << k31::shapeText(sum->getShape()) << ", expected one shape";
  }
  if (groups < 1 || cols % groups)
    return emitOpError() << groups << " groups do not divide the " << cols << " columns";
  return k31::isRowOn(*this, "the sum", static_cast<int64_t>(getAt()), getInputs(), rows, cols, groups, getBody(),
                      getResults().size());
}

// Over one rank the sum is x.
LogicalResult SumRowOp::canonicalize(SumRowOp op, PatternRewriter &rewriter) {
  if (op.getSize() != 1)
    return failure();
  SmallVector<Value> inputs = op.rowInputs();
  inputs[op.getAt()] = op.getX();
  const bool sums = !op.getBody().front().getOps<k31::nn::SumOp>().empty();
  Operation *row;
  if (sums || op.getGroups() != 1)
    row = k31::nn::RowOp::create(rewriter, op.getLoc(), op.getResults().getTypes(), op.getLive(), inputs, op.getFused(),
                                 op.getGroups());
  else
    row = k31::nn::MapOp::create(rewriter, op.getLoc(), op.getResults().getTypes(), op.getLive(), inputs, op.getFused());
  rewriter.inlineRegionBefore(op.getBody(), row->getRegion(0), row->getRegion(0).end());
  SmallVector<Value> values{op.getX()};
  llvm::append_range(values, row->getResults());
  rewriter.replaceOp(op, values);
  return success();
}
