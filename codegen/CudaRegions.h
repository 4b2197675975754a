// Fused regions as CUDA C++: one scalar function a phase, in the order of values that codegen/kernels/common/region.h gives.
#pragma once
#include "mlir/IR/Region.h"
#include <string>

namespace k31 {

// `struct Region { static void phase0(const float *in, float *out) ... };` with the functions of all regions of a kernel,
// numbered on from one to the next, or a diagnostic on the op that has no such form. Without regions: nothing.
llvm::FailureOr<std::string> cudaRegions(llvm::ArrayRef<mlir::Region *> regions);

} // namespace k31
