// The k31 dialect: the model as published. See K31Ops.td.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/K31/K31Dialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/K31/K31Attrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/K31/K31Ops.h.inc"
