// Who moves rows between ranks: a library or a kernel of the plan.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace k31 {
// Sets the transport of each collective for which the peer transport is possible and wanted: k31.options' `transport`, "library"
// unless given, "peer", or "auto" for the cheaper one. Notes the choice with both times on every collective. Nothing for plans of
// one rank, or where the module has no k31.mesh.
mlir::LogicalResult chooseTransports(mlir::ModuleOp module, bool cuda);

// A collective that needs no kernel.
bool isByLibrary(mlir::Operation *op);

} // namespace k31
