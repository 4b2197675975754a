#include "dialects/Moe/Moe.h"
#include "dialects/Support/KeepConstants.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k31::moe;

#include "dialects/Moe/MoeDialect.cpp.inc"

void MoeDialect::initialize() {
  addInterfaces<k31::KeepConstants>();
  addOperations<
#define GET_OP_LIST
#include "dialects/Moe/MoeOps.cpp.inc"
      >();
  declarePromisedInterfaces<KernelOp, RouteOp, PermuteOp, GroupedLinearOp, CombineOp>(); // codegen attaches the models
}

LogicalResult RouteOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto logits = cast<RankedTensorType>(adaptor.getLogits().getType());
  int64_t top = adaptor.getTopK();
  if (logits.getRank() != 2 || top < 1)
    return emitOptionalError(location, "expected logits [T, E] and top_k of 1 or more, found ", logits, " and ", top);
  types.push_back(RankedTensorType::get({logits.getDimSize(0), top}, IntegerType::get(context, 32)));
  types.push_back(RankedTensorType::get({logits.getDimSize(0), top}, Float32Type::get(context)));
  return success();
}

LogicalResult PermuteOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  auto ids = cast<RankedTensorType>(adaptor.getIds().getType());
  int64_t experts = adaptor.getExperts();
  if (x.getRank() != 2 || ids.getRank() != 2 || experts < 1)
    return emitOptionalError(location, "expected x [T, C], ids [T, k] and experts of 1 or more, found ", x, ", ", ids, " and ",
                             experts);
  Type i32 = IntegerType::get(context, 32);
  types.push_back(x.clone({x.getDimSize(0) * ids.getDimSize(1), x.getDimSize(1)}));
  types.push_back(RankedTensorType::get({experts + 1}, i32));
  types.push_back(RankedTensorType::get(ids.getShape(), i32));
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Moe/MoeOps.cpp.inc"
