// The three kinds of fusion, in the order in which fuse-ops runs them.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace k31 {

// A map over the halves of a product becomes its paired epilogue, and the weight's two parts are interleaved for every user.
void pairProducts(mlir::ModuleOp module);
// A map that is the only user of a product or convolution becomes its epilogue.
void fuseEpilogues(mlir::ModuleOp module);
// Maps and rows that follow each other become one region.
void fuseRows(mlir::ModuleOp module);

} // namespace k31
