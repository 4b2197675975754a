// Sizes of buffers in bytes: tensors are dense, two f4 codes share a byte.
#pragma once
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"
#include <cstdint>

namespace k31 {

constexpr int64_t kAlignment = 256; // of buffers, stack members and cache pools: whole cache lines, and what TMA needs

inline int64_t elementBits(mlir::Type element) { return element.getIntOrFloatBitWidth(); }
inline int64_t byteSize(mlir::RankedTensorType type) {
  return llvm::divideCeil(type.getNumElements() * elementBits(type.getElementType()), 8);
}
inline int64_t byteSize(mlir::Type type) { return byteSize(llvm::cast<mlir::RankedTensorType>(type)); }
inline int64_t aligned(int64_t bytes) { return llvm::alignTo(bytes, kAlignment); }

} // namespace k31
