// The inputs and outputs of an entry: what the arguments and results of its function are in the entry contract.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include <optional>

namespace k31::to_plan {

// What a value of level 2 is: a buffer, the four pointers of a batch, or a layer number.
struct Known {
  mlir::SmallVector<mlir::Value, 1> buffers;
  std::optional<int64_t> number;
  int64_t pitch = 0; // elements between rows, for columns of columns

  Known() = default;
  Known(mlir::Value buffer, int64_t pitch = 0) : buffers{buffer}, pitch(pitch) {}
};

// A buffer of an arena without an offset yet; bytes [offset, offset + bytes) of one.
mlir::Value alloc(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef arena, mlir::Type type);
mlir::Value view(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source, int64_t offset, int64_t bytes);

// Arguments by k31.input: one buffer an input, parts of it for arguments with k31.offset.
mlir::LogicalResult buildInputs(mlir::func::FuncOp function, mlir::OpBuilder &builder, mlir::SmallVectorImpl<Known> &arguments);

// Results by k31.output: one buffer an output, by name in `outputs`; results with k31.offset are parts of it. destinations[i] is
// where result i must be.
mlir::LogicalResult buildOutputs(mlir::func::FuncOp function, mlir::OpBuilder &builder,
                                 mlir::SmallVectorImpl<mlir::Value> &destinations,
                                 llvm::MapVector<mlir::StringAttr, mlir::Value> &outputs);

} // namespace k31::to_plan
