// The coll dialect: whatever needs another rank. See CollOps.td.
#pragma once
#include "dialects/Coll/CollMesh.h"
#include "dialects/Interfaces/KernelOp.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Coll/CollDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Coll/CollOps.h.inc"
