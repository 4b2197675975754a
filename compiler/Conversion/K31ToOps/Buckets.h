// The entries of a plan: one function for each bucket of rows.
#pragma once
#include "codegen/Target.h"
#include "dialects/Attn/Attn.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace k31 {

// What k31.options says about the entries. Sizes are per sequence group.
struct EntryOptions {
  int64_t maxContext = 0, maxBatch = 0, prefillChunk = 0, logitRows = 0;
  std::string moeExchange = "auto"; // or the name of an ExpertForm
  const Target *target = nullptr;   // never null once read
};
llvm::FailureOr<EntryOptions> readEntryOptions(mlir::ModuleOp module);

struct Bucket {
  std::string name; // "decode_b8", "prefill_t2048"
  llvm::StringRef kind;
  int64_t rows = 0;      // T: tokens of a call, at most
  int64_t segments = 0;  // sequences of a call, at most
  int64_t logitRows = 0; // L: rows that get logits, at most
  int64_t blocks = 0;    // cache blocks of a sequence, at most
  // Rows of the residual stream that a rank holds: T, or T / tp when the ranks of a tp group share them out.
  int64_t streamRows = 0;
  bool byQueryRows = false; // MLA: the rows of a rank with all heads; else all rows with its heads

  bool isDecode() const { return kind == "decode"; }
  bool isSharded() const { return streamRows < rows; }
  // The batch of all rows, and of those of one rank of a tp group.
  attn::BatchType batchType(mlir::MLIRContext *context) const { return attn::BatchType::get(context, rows, segments, blocks); }
  attn::BatchType ownBatchType(mlir::MLIRContext *context) const {
    return attn::BatchType::get(context, streamRows, segments, blocks);
  }
  // Of the entry of a pipeline stage.
  std::string nameOf(int64_t stage) const { return stage ? name + ".stage" + std::to_string(stage) : name; }
};
// Rows of prompts are a multiple of the tp ranks, which may share them out.
llvm::SmallVector<Bucket> bucketsOf(const EntryOptions &options, int64_t tp);

} // namespace k31
