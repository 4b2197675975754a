// Fused regions as CUDA C++: one scalar function a phase, in the order of values that codegen/kernels/common/region.h gives.
#pragma once
#include "mlir/IR/Region.h"
#include <string>

namespace k31 {

// `struct Region { static void phase0(const float *in, float *out) ... };`, or a diagnostic on the op that has no such form.
llvm::FailureOr<std::string> cudaRegion(mlir::Region &region);

} // namespace k31
