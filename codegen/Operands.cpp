#include "codegen/Operands.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Diagnostics.h"

using namespace llvm;
using namespace mlir;

namespace k31 {

using kernels::DType;
using kernels::OperandKind;

std::optional<OperandKind> operandKind(RankedTensorType type, int64_t rows, int64_t cols, int64_t groups) {
  if (type.getRank() == 2 && type.getDimSize(0) == rows) {
    if (type.getDimSize(1) == cols)
      return OperandKind::element;
    if (type.getDimSize(1) == 1)
      return OperandKind::row_scalar;
    return std::nullopt;
  }
  if (type.getRank() != 1)
    return std::nullopt;
  int64_t n = type.getDimSize(0);
  if (n == cols || (groups > 1 && n * groups == cols))
    return OperandKind::column;
  if (n > 0 && cols % n == 0)
    return OperandKind::column_group;
  return std::nullopt;
}

int64_t leadingDim(Value value) {
  while (auto view = value.getDefiningOp<nn::ColumnsOp>())
    value = view.getSource();
  return tensorOf(value).getShape().back();
}

uint64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? (type.getNumElements() * type.getElementTypeBitWidth() + 7) / 8 : 0;
}

uint64_t bytesOf(ValueRange values) {
  uint64_t bytes = 0;
  for (Value value : values)
    bytes += bytesOf(value);
  return bytes;
}

DType OpReader::floatType(Type type, StringRef what) {
  if (type.isF32())
    return DType::f32;
  if (type.isBF16())
    return DType::bf16;
  if (!bad)
    refuse() << what << " has elements of " << type << "; kernels take f32 and bf16";
  return DType::f32;
}

void OpReader::requireF32(Value value, StringRef what) {
  if (!bad && !tensorOf(value).getElementType().isF32())
    refuse() << what << " has elements of " << tensorOf(value).getElementType() << "; the kernel takes f32";
}

void OpReader::requireDense(Value value, StringRef what) {
  int64_t cols = tensorOf(value).getShape().back(), ld = leadingDim(value);
  if (!bad && ld != cols)
    refuse() << what << " is a view of " << cols << " columns of " << ld << "; the kernel takes rows without gaps";
}

int32_t OpReader::number(int64_t value, StringRef what) {
  if (!bad && (value < INT32_MIN || value > INT32_MAX))
    refuse() << what << " is " << value << "; a kernel's Config holds 32 bits";
  return static_cast<int32_t>(value);
}

} // namespace k31
