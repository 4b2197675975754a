// What a mesh decided, written down for k31c explain.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace k31 {

// On each op that reads a weight, "share": which part of it this rank holds. On what goes from stage to stage, "transport".
// Nothing for plans of one rank, or where the module has no k31.mesh.
void notePlacement(mlir::ModuleOp module, bool cuda);

} // namespace k31
