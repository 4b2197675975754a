// Words of k31.options: what a plan's options leave to choose.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace k31 {

// The option's word, the first of `words` unless it is given; a diagnostic when it is none of them.
llvm::FailureOr<llvm::StringRef> optionWord(mlir::ModuleOp module, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> words);

} // namespace k31
