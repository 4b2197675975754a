// A checkpoint's config.json and tensor headers as level-1 IR. Payload bytes are not read.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace k31 {

// Layers [begin, end) of a model, counted from 0.
struct LayerRange {
  int64_t begin = 0, end = 0;
};
// "A:B" with A < B; nothing when `text` is no such range.
std::optional<LayerRange> parseLayerRange(llvm::StringRef text);

struct ImportOptions {
  std::string modelDir;
  std::string activations = "bf16"; // "bf16" or "fp32": element type of the residual stream
  std::optional<double> mlaNormEps; // of q_a_layernorm and kv_a_layernorm; default 1e-6
  std::optional<LayerRange> layers; // a slice of the model; all layers unless given
};

// The dialects are loaded into `context`. Faults are diagnostics, one line each, located by the key's or the tensor's name.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importModel(mlir::MLIRContext &context, const ImportOptions &options);

// Adds --import-model to a translation tool: DIR/config.json to IR.
void registerImportModel();

} // namespace k31
