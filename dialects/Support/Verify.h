// What the verifiers of the dialects share: shapes in messages, element types, operands and bodies of fused regions.
#pragma once
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include <optional>
#include <string>

namespace k31 {

// "[8, 192]", for messages.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

// The type of a value of level 2 with a static shape of this rank, or an error: "x is tensor<8xf32>, expected [T, K] of static
// size".
mlir::FailureOr<mlir::RankedTensorType> shaped(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                                               llvm::StringRef dims);

// "x has 7168 columns, but w has 6144 columns". `what` is the unit that both sides count.
mlir::LogicalResult sameSize(mlir::Operation *op, llvm::StringRef what, llvm::StringRef a, int64_t sizeA, llvm::StringRef b,
                             int64_t sizeB);

// Values of kernels are bf16 or fp32.
mlir::LogicalResult isReal(mlir::Operation *op, llvm::StringRef name, mlir::RankedTensorType type);
mlir::LogicalResult isElement(mlir::Operation *op, llvm::StringRef name, mlir::RankedTensorType type, mlir::Type expected);

// The number of live rows: tensor<1xi32>.
mlir::LogicalResult isLive(mlir::Operation *op, mlir::Value live);

// How an operand of a fused region spreads over [T, C].
enum class Broadcast {
  element, // [T, C]
  row,     // [T, 1]
  column,  // [C], or [C / groups] which repeats in each group
  columns, // [G] with G dividing C: one value for C / G neighbouring columns
};
std::optional<Broadcast> broadcastOf(mlir::RankedTensorType operand, int64_t rows, int64_t cols, int64_t groups = 1);
mlir::LogicalResult isBroadcast(mlir::Operation *op, llvm::StringRef name, mlir::Value operand, int64_t rows, int64_t cols,
                                int64_t groups = 1);

// What code generation can do on lanes: elementwise arith and math ops, and constants.
bool isScalarMath(mlir::Operation &op);

// A fused region: one block of such ops (and nn.sum when allowed) on its own arguments, all f32, ended by nn.yield.
mlir::LogicalResult isFusedRegion(mlir::Operation *op, mlir::Region &region, size_t arguments, llvm::StringRef argumentText,
                                  size_t results, bool sums);

// The region of a row op inside an op that makes one of its [rows, cols] operands by itself: `made`, number `at` of the region's
// arguments, beside `inputs`.
mlir::LogicalResult isRowOn(mlir::Operation *op, llvm::StringRef made, int64_t at, mlir::ValueRange inputs, int64_t rows,
                            int64_t cols, int64_t groups, mlir::Region &body, size_t results);

} // namespace k31
