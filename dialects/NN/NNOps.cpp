#include "dialects/NN/NN.h"
#include "dialects/Support/KeepConstants.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::nn;

#include "dialects/NN/NNDialect.cpp.inc"

void NNDialect::initialize() {
  addInterfaces<k31::KeepConstants>();
  addOperations<
#define GET_OP_LIST
#include "dialects/NN/NNOps.cpp.inc"
      >();
  declarePromisedInterfaces<KernelOp, EmbedOp, LinearOp, HeadLinearOp, MapOp, RowOp, GatherOp,
                            SampleOp>(); // codegen attaches the models
}

LogicalResult ColumnsOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getSource().getType());
  int64_t begin = adaptor.getBegin(), end = adaptor.getEnd();
  SmallVector<int64_t> shape(type.getShape());
  if (shape.empty() || shape.size() > 2 || begin < 0 || begin >= end || end > shape.back())
    return emitOptionalError(location, "columns [", begin, ", ", end, ") do not lie in ", type);
  shape.back() = end - begin;
  types.push_back(type.clone(shape));
  return success();
}

// A view of all columns is its source; a view of a view is one view.
OpFoldResult ColumnsOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  auto inner = getSource().getDefiningOp<ColumnsOp>();
  if (!inner)
    return {};
  int64_t shift = inner.getBegin();
  setBegin(getBegin() + shift);
  setEnd(getEnd() + shift);
  getSourceMutable().assign(inner.getSource());
  return getResult();
}

#define GET_OP_CLASSES
#include "dialects/NN/NNOps.cpp.inc"
