// Models of the KernelOp interface: op -> kernel, Config, split. One function select(op, read) an op, one file a dialect: NN.cpp,
// Attn.cpp, Moe.cpp, Coll.cpp.
#pragma once
#include "codegen/Operands.h"
#include "mlir/IR/DialectRegistry.h"

namespace k31 {

// Attached when the dialects are loaded.
void registerKernelModels(mlir::DialectRegistry &registry);

void registerNNKernelModels(mlir::DialectRegistry &registry);
void registerAttnKernelModels(mlir::DialectRegistry &registry);
void registerMoeKernelModels(mlir::DialectRegistry &registry);
void registerCollKernelModels(mlir::DialectRegistry &registry);

// ---- for those files

// The model of an op whose kernel is what the function select(op, read) says.
template <class Op> struct KernelModel : KernelOp::ExternalModel<KernelModel<Op>, Op> {
  llvm::FailureOr<KernelSpec> selectKernel(mlir::Operation *op, const Target &target) const {
    OpReader read(op, target);
    return select(llvm::cast<Op>(op), read);
  }
};
template <class... Ops> void attachModels(mlir::MLIRContext *context) {
  (Ops::template attachInterface<KernelModel<Ops>>(*context), ...);
}

} // namespace k31
