// Putting fused regions together: one block whose arguments are operands, whose body is copied from the ops that are fused.
#pragma once
#include "dialects/NN/NN.h"
#include "mlir/IR/Builders.h"

namespace k31 {

class FusedRegion {
public:
  explicit FusedRegion(mlir::Location loc);

  // A sum that the kernel makes: an argument without an operand. Before any operand.
  mlir::Value addSum();
  // The argument of an operand; an operand that is used twice gets one.
  mlir::Value argument(mlir::Value operand);
  // Copies the region with these values for its arguments; returns what it yields.
  llvm::SmallVector<mlir::Value> copy(mlir::Region &region, mlir::ValueRange arguments);
  void yield(mlir::ValueRange values);

  llvm::ArrayRef<mlir::Value> operands() const { return operandOf; }
  mlir::Region &get() { return *region; }

private:
  mlir::Location loc;
  std::unique_ptr<mlir::Region> region;
  mlir::Block *block;
  llvm::SmallVector<mlir::Value> operandOf; // of the arguments behind the sums
  llvm::DenseMap<mlir::Value, mlir::Value> argumentOf;
};

// Is `live` offsets[E], the number of rows that the experts' products have?
bool isRowsOfExperts(mlir::Value offsets, mlir::Value live);

// The note of a fusion: `producer` into `consumer`, both gone soon, as `created`, which inherits their notes. `between` is the
// value that is no longer stored, or no longer read back when others `alsoRead` it.
void noteFusion(mlir::Operation *created, mlir::Operation *producer, mlir::Operation *consumer, mlir::Value between,
                bool alsoRead = false);

// The note of a sum over the ranks and the row op that reads it, both gone soon, as `created`.
void noteSum(mlir::Operation *created, mlir::Operation *sum, mlir::Operation *row);

// The note of a fusion that was not made: `consumer` stays behind `producer`, because `why`.
void noteApart(mlir::Operation *consumer, mlir::Operation *producer, const llvm::Twine &why);

// `fused` of several ops, in order, as one list; missing ones are left out.
mlir::ArrayAttr joinFused(mlir::MLIRContext *context, llvm::ArrayRef<mlir::ArrayAttr> parts);

} // namespace k31
