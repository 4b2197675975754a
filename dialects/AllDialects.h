// The dialects of the project, registered in one place.
#pragma once
#include "mlir/IR/DialectRegistry.h"

namespace k31 {
// k31, nn, attn, moe, coll, plan and the upstream dialects that they use (func, arith, math).
void registerDialects(mlir::DialectRegistry &registry);
} // namespace k31
