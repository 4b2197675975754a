// The Config of the operands and the region of a row op, for every kernel that runs one.
#pragma once
#include "codegen/Operands.h"
#include "codegen/kernels/nn/row.h"

namespace k31 {

// Fills one slot of the operand arrays of a Config: kind, type, row distance and length.
void readOperand(OpReader &read, mlir::Value value, int64_t rows, int64_t cols, int64_t groups, llvm::StringRef what,
                 int32_t &kind, int32_t &type, int32_t &ld, int32_t &length);
void readResults(OpReader &read, mlir::ResultRange results, int32_t &count, int32_t (&types)[kernels::kMaxOperands],
                 int32_t (&ld)[kernels::kMaxOperands]);
bool tooMany(OpReader &read, mlir::ValueRange operands);

// Of nn.row, nn.map and coll.sum_row, but for `rows`: one result or more.
llvm::FailureOr<kernels::row::Config> rowConfig(OpReader &read, mlir::ValueRange inputs, mlir::ResultRange results,
                                                int64_t groups, mlir::Region &body);

// Puts an input of elements that the kernel makes by itself in front of input `at`; nothing in memory has it.
llvm::LogicalResult insertInput(OpReader &read, kernels::row::Config &config, int32_t at, kernels::DType type);

} // namespace k31
