// Elementary functions of fused regions in terms of +, *, / and bit operations: the host image has no math library.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace k31 {

// Rewrites math ops on vectors of f32. Refuses those that would need a library, on the op.
llvm::LogicalResult expandMath(mlir::ModuleOp module);

} // namespace k31
