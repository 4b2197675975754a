// The moe dialect: mixture of experts. See MoeOps.td.
#pragma once
#include "dialects/Interfaces/KernelOp.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Moe/MoeDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Moe/MoeOps.h.inc"
