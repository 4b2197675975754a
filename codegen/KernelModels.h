// Models of the KernelOp interface: op -> kernel, Config, split. One file a dialect: NN.cpp, Attn.cpp, Moe.cpp, Coll.cpp.
#pragma once
#include "mlir/IR/DialectRegistry.h"

namespace k31 {

// Attached when the dialects are loaded.
void registerKernelModels(mlir::DialectRegistry &registry);

void registerNNKernelModels(mlir::DialectRegistry &registry);
void registerAttnKernelModels(mlir::DialectRegistry &registry);
void registerMoeKernelModels(mlir::DialectRegistry &registry);
void registerCollKernelModels(mlir::DialectRegistry &registry);

} // namespace k31
