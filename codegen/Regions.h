// Fused regions as machine code: scalar arith and math ops become functions over 16 lanes (codegen/kernels/common/region.h).
//
// A region without nn.sum is one function, k31_region_0 of the first region. With sums it is split by their depth: a sum of
// elements has depth 1, a sum of values that depend on sums of depth d has depth d + 1. Function p computes what the sums of
// depth p + 1 add up, the last one computes what the region yields. Each takes the region's arguments, then all sums of smaller
// depth, in order of depth. The functions of a further region of the same kernel are numbered on.
#pragma once
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace k31 {

// The regions of an op that have a body.
llvm::SmallVector<mlir::Region *, 1> regionsOf(mlir::Operation *op);

// The nn.sum ops of a region by depth.
struct RegionPhases {
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> sums;
  int count() const { return static_cast<int>(sums.size()); }
  int totalSums() const;
  bool fits() const; // what nn.row can run
};

RegionPhases findPhases(mlir::Region &region);

// Refuses what no kernel can hold, with the numbers compared: arguments, results, phases, sums.
llvm::FailureOr<RegionPhases> analyzeRegion(mlir::Region &region);

// One function of a region: what stands in its input, in order, and what it computes.
struct RegionFunction {
  llvm::SmallVector<mlir::Value> inputs, outputs;
};

// The functions in order, `phases.count()` + 1 of them.
llvm::SmallVector<RegionFunction> splitRegion(mlir::Region &region, const RegionPhases &phases);

// The functions k31_region_<p> of a kernel's regions. Thread-safe as long as the context allows threads.
std::unique_ptr<llvm::Module> lowerRegions(llvm::ArrayRef<mlir::Region *> regions, llvm::LLVMContext &context);

// What lowerRegions needs: dialects that it makes, and their translation to LLVM IR. Load them before threads start.
void registerRegionDialects(mlir::DialectRegistry &registry);

} // namespace k31
