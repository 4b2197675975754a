// Level 3 and the plan file: one op is one table, so both directions are a walk. Export of an import gives the same bytes.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <cstddef>
#include <span>
#include <string>

namespace k31 {

// The FlatBuffer (without trailer) of a module of plan ops with offsets and code. Equal modules give equal bytes.
mlir::FailureOr<std::string> exportPlan(mlir::ModuleOp module);

// A module from the FlatBuffer of a plan (aligned to 8), which may come from anywhere: it passes the checks of the runtime's Load
// first. Buffers become tensors of bytes. Diagnostics are at `name`, the file's name.
mlir::OwningOpRef<mlir::ModuleOp> importPlan(std::span<const std::byte> flatbuffer, llvm::StringRef name,
                                             mlir::MLIRContext *context);

// Adds --plan-to-mlir and --mlir-to-plan to a translation tool.
void registerPlanTranslations();

} // namespace k31
