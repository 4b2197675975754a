// The coll dialect: whatever needs another rank. See CollOps.td.
#pragma once
#include "dialects/Coll/CollMesh.h"
#include "dialects/Interfaces/KernelOp.h"
#include "dialects/NN/NN.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Coll/CollDialect.h.inc"

namespace k31::coll {
// Bytes of a piece with room for so many rows of `columns` values with their choices (codegen/kernels/coll/piece.h).
int64_t pieceBytes(int64_t rows, int64_t columns, mlir::Type element, int64_t choices);
} // namespace k31::coll

#define GET_OP_CLASSES
#include "dialects/Coll/CollOps.h.inc"
