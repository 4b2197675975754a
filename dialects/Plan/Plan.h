// The plan dialect: what the device is told to do. See PlanOps.td.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace k31::planir {
// Of launches, collectives and entries: symbols of plan.note.
inline constexpr llvm::StringLiteral kNotes = "plan.notes";
} // namespace k31::planir

#include "dialects/Plan/PlanDialect.h.inc"
#include "dialects/Plan/PlanEnums.h.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"
