// CUDA kernels to machine code: source + Config + Tile + fused region -> NVRTC -> one cubin a kernel.
#pragma once
#include "codegen/Target.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Region.h"
#include <string>
#include <vector>

namespace k31 {

// One kernel of a plan.
struct CudaKernel {
  mlir::Location loc;
  llvm::StringRef name;                         // "nn.row": a kernel of CudaKernels.h
  mlir::DictionaryAttr config;                  // the fields of its Config
  mlir::DictionaryAttr tile;                    // the fields of its Tile
  llvm::SmallVector<mlir::Region *, 1> regions; // the fused regions, if any
  std::string symbol;                           // set by compileCudaKernels: "k31_" and a hash of what the code depends on
};

struct CudaImage {
  std::string symbol; // of its one kernel
  std::string code;   // a cubin
};

struct CudaCompileStats {
  int compiled = 0; // cubins made
  int cached = 0;   // cubins taken from the cache
};

// Sets the symbols and makes one image a symbol, in the order of symbols. `cache` is a folder of cubins by content, made when it
// does not exist; empty: none. The same kernels and the same NVRTC give the same bytes.
llvm::FailureOr<std::vector<CudaImage>> compileCudaKernels(llvm::MutableArrayRef<CudaKernel> kernels, const Target &target,
                                                           llvm::StringRef cache, CudaCompileStats *stats = nullptr);

} // namespace k31
