// Host kernels to machine code: bitcode + Config + fused region -> object -> one shared object a processor level.
#pragma once
#include "codegen/Target.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Region.h"
#include <string>
#include <vector>

namespace k31 {

// One kernel of a plan.
struct HostKernel {
  mlir::Location loc;
  llvm::StringRef name;                         // "nn.row": a kernel of KernelTable.h
  llvm::SmallVector<int32_t> config;            // its Config, word by word
  llvm::SmallVector<mlir::Region *, 1> regions; // the fused regions, if any
  std::string symbol;                           // set by compileHostKernels: "k31_" and a hash of what the code depends on
};

struct HostImage {
  const HostLevel *level;
  std::string code; // an ELF shared object that exports the kernels' symbols and needs no library
};

struct HostCompileStats {
  int compiled = 0; // objects made
  int cached = 0;   // objects taken from the cache
};

// Sets the symbols and makes one image a level, best level first: all of the target's, or those named by `only`. `cache` is a
// folder of objects by content, made when it does not exist; empty: none. The same kernels give the same bytes.
llvm::FailureOr<std::vector<HostImage>> compileHostKernels(llvm::MutableArrayRef<HostKernel> kernels, const Target &target,
                                                           llvm::StringRef cache, HostCompileStats *stats = nullptr,
                                                           llvm::ArrayRef<std::string> only = {});

} // namespace k31
