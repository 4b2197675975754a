// The kernels that exist, by name: "<dialect>.<kernel>" for codegen/kernels/<dialect>/<kernel>.*.
#pragma once
#include "codegen/ConfigFields.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace k31 {

// LLVM bitcode of a host kernel, embedded when the project is built; empty for a name that does not exist.
llvm::StringRef hostBitcode(llvm::StringRef kernel);

// Names of all kernels, sorted.
std::vector<llvm::StringRef> kernelNames();

// The words of the kernel's Config, or a diagnostic that names the field.
llvm::FailureOr<llvm::SmallVector<int32_t>> kernelConfigWords(llvm::StringRef kernel, mlir::DictionaryAttr fields,
                                                              EmitError emitError);

} // namespace k31
