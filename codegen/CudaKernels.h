// The CUDA kernels that exist: codegen/kernels/<dialect>/<kernel>.{tile.h,cuh} and everything they include, inside this binary.
#pragma once
#include "codegen/ConfigFields.h"
#include "codegen/Nvrtc.h"
#include "dialects/Support/Notes.h"
#include <array>

namespace k31 {

// How a kernel with a given Config is launched; static, since an entry is one CUDA graph.
struct CudaLaunch {
  mlir::DictionaryAttr tile; // its Tile, field by field
  std::array<int32_t, 3> grid = {1, 1, 1};
  int32_t block = 1;                          // threads
  int32_t smem = 0;                           // bytes of dynamic shared memory
  uint64_t workspace = 0;                     // bytes of scratch, the last argument
  mlir::ArrayAttr maps;                       // tensor maps, as plan.launch has them; null: none
  int32_t mapsAt = 0;                         // their place in the argument block
  std::string choice;                         // the Tile and its grid, for people: "mapped 64 x 96", "264 blocks of 256 threads"
  std::string reason;                         // what decided; with candidates the estimate of the cheapest
  llvm::SmallVector<Candidate, 0> candidates; // tiles that fit and their estimated times; empty: one tile fits
};

// The cheapest Tile for this Config by the kernel's estimate, or the one that its rule gives, and what follows from it.
llvm::FailureOr<CudaLaunch> cudaLaunch(llvm::StringRef kernel, mlir::DictionaryAttr config, EmitError emitError);

// The source of one specialised kernel; `region` is the text of `struct Region`, or empty.
llvm::FailureOr<std::string> cudaSource(llvm::StringRef kernel, mlir::DictionaryAttr config, mlir::DictionaryAttr tile,
                                        llvm::StringRef region, llvm::StringRef symbol, EmitError emitError);

// The embedded headers that the kernel includes, directly or not, in order of name.
std::vector<NvrtcHeader> cudaHeaders(llvm::StringRef kernel);

// An fp32 number as an exact C++ literal.
std::string cudaLiteral(float value);

} // namespace k31
