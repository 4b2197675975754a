#ifndef K31_INTERFACES_KERNELOP_TD
#define K31_INTERFACES_KERNELOP_TD
include "mlir/IR/OpBase.td"

def KernelOp : OpInterface<"KernelOp"> {
  let cppNamespace = "::k31";
  let description = [{
    A level-2 op that one kernel launch implements. The launch's arguments follow from the op: its operands in order (a batch
    expands into its four pointers), then its results, then the workspace. Codegen attaches the models.
  }];
  let methods = [
    InterfaceMethod<"The best kernel for this op on the target, or a diagnostic on the op.",
      "::llvm::FailureOr<::k31::KernelSpec>", "selectKernel", (ins "const ::k31::Target &":$target)>,
  ];
}
#endif
