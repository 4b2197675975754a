#include "dialects/Attn/Attn.h"
#include "dialects/Support/KeepConstants.h"
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
  addInterfaces<k31::KeepConstants>();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Attn/AttnTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Attn/AttnOps.cpp.inc"
      >();
  declarePromisedInterfaces<KernelOp, AppendOp, ShortConvOp, KDAOp, IndexSelectOp, AttendOp,
                            BatchRowsOp>(); // codegen attaches the models
}

bool CacheType::hasCodes() const { return isa<Float8E4M3FNType>(getElement()) || getElement().isInteger(8); }

int64_t CacheType::getRowCodes() const { return !hasCodes() ? 0 : getKind() == CacheKind::index ? getShape()[1] : getCodes(); }

int64_t CacheType::getUnitBytes() const {
  if (!hasCodes())
    return llvm::product_of(getShape()) * (getElement().getIntOrFloatBitWidth() / 8);
  const int64_t width = getShape()[1], codes = getRowCodes(), scales = getKind() == CacheKind::index ? 1 : (codes + 127) / 128;
  return getShape()[0] * (codes + 4 * scales + 2 * (width - codes));
}

RankedTensorType CacheType::getStored(int64_t units) const {
  SmallVector<int64_t> shape{units};
  if (hasCodes()) {
    shape.push_back(getUnitBytes());
    return RankedTensorType::get(shape, IntegerType::get(getContext(), 8, IntegerType::Unsigned));
  }
  llvm::append_range(shape, getShape());
  return RankedTensorType::get(shape, getElement());
}

LogicalResult CacheOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto pool = symbols.lookupNearestSymbolFrom<PoolOp>(*this, getPoolAttr());
  if (!pool)
    return emitOpError() << getPoolAttr() << " is not an attn.pool";
  if (pool.getType() != getResult().getType())
    return emitOpError() << "has type " << getResult().getType() << ", but " << getPoolAttr() << " has type " << pool.getType();
  return success();
}

LogicalResult IndexSelectOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  auto q = cast<RankedTensorType>(adaptor.getQ().getType());
  int64_t top = adaptor.getTopK();
  if (q.getRank() != 2 || top < 1)
    return emitOptionalError(location, "expected q [T, heads * head_dim] and top_k of 1 or more, found ", q, " and ", top);
  types.push_back(RankedTensorType::get({q.getDimSize(0), top}, IntegerType::get(context, 32)));
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Attn/AttnOps.cpp.inc"
