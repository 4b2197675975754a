// The kinds of fusion: four in the order in which fuse-ops runs them, and those of select-kernels.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace k31 {
class Target; // codegen/Target.h

// A map over the halves of a product becomes its paired epilogue, and the weight's two parts are interleaved for every user.
void pairProducts(mlir::ModuleOp module);
// A map that is the only user of a product or convolution becomes its epilogue.
void fuseEpilogues(mlir::ModuleOp module);
// Maps and rows that follow each other become one region.
void fuseRows(mlir::ModuleOp module);
// Products of the same rows that have no epilogue become one, and their weights a merged stack. Notes what was merged, and on
// products of these rows that stay apart why.
void mergeProducts(mlir::ModuleOp module);

// attn.short_conv over q, k and v, attn.kda token by token and the nn.row on its heads as attn.kda_decode, where the target can.
// Notes each fusion, and on an attn.kda that stays apart why.
void fuseKDADecode(mlir::ModuleOp module, const Target &target);
// Sums by peer and the row ops behind them as coll.sum_row: k31.options' `fuse_sums`, "auto" unless given (on a GPU, where rows
// are few), "on" wherever it is possible, "off". Notes each fusion, and on row ops that stay apart why.
mlir::LogicalResult fuseSums(mlir::ModuleOp module, const Target &target);

} // namespace k31
