// The interface between an op and the launch that implements it.
#pragma once
#include "dialects/Support/Notes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include <array>
#include <cstdint>
#include <string>

namespace k31 {
class Target; // codegen/Target.h

// What the compiler launches for one op. `name` is "<dialect>.<kernel>": its files are codegen/kernels/<dialect>/<kernel>.*.
struct KernelSpec {
  std::string name;
  mlir::DictionaryAttr config; // the fields of the kernel's Config by name
  uint32_t tasks = 1;          // host: independent parts of the launch
  uint64_t workspace = 0;      // bytes of scratch, the last argument; 0: none
  std::string choice;          // what was chosen among the candidates: "7 tasks"
  std::string reason;          // why, with the numbers that were compared
  llvm::SmallVector<Candidate, 0> candidates;

  // CUDA: the kernel's Tile by name and the launch that follows from Config and Tile.
  mlir::DictionaryAttr tile;
  std::array<int32_t, 3> grid = {1, 1, 1};
  int32_t block = 1;    // threads
  int32_t smem = 0;     // bytes of dynamic shared memory
  mlir::ArrayAttr maps; // tensor maps, as plan.launch has them; null: none
  int32_t mapsAt = 0;
};
} // namespace k31

#include "dialects/Interfaces/KernelOp.h.inc"
