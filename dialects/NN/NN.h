// The nn dialect: dense parts. See NNOps.td.
#pragma once
#include "dialects/Coll/CollMesh.h"
#include "dialects/Interfaces/KernelOp.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/NN/NNDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/NN/NNOps.h.inc"
