// What a mesh decided, written down for k31c explain.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace k31 {

// On each op that reads a weight, "share": which part of it this rank holds. On each collective, "transport": bytes, ranks, who
// moves them and about how long that takes, unless whoever made the op noted it. Nothing for plans of one rank, or where the
// module has no k31.mesh.
void notePlacement(mlir::ModuleOp module, bool cuda);

} // namespace k31
