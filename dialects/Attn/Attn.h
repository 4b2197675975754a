// The attn dialect: attention and its caches. See AttnOps.td.
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

#include "dialects/Attn/AttnDialect.h.inc"
#include "dialects/Attn/AttnEnums.h.inc"

namespace k31 {
constexpr int64_t kBlockTokens = 256; // positions of one block of a paged cache
}

#define GET_TYPEDEF_CLASSES
#include "dialects/Attn/AttnTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Attn/AttnOps.h.inc"
