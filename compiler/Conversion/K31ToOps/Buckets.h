// The entries of a plan: one function for each bucket of rows.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace k31 {

// What k31.options says about the entries. Sizes are per sequence group.
struct EntryOptions {
  int64_t maxContext = 0, maxBatch = 0, prefillChunk = 0, logitRows = 0;
};
llvm::FailureOr<EntryOptions> readEntryOptions(mlir::ModuleOp module);

struct Bucket {
  std::string name; // "decode_b8", "prefill_t2048"
  llvm::StringRef kind;
  int64_t rows = 0;      // T: tokens of a call, at most
  int64_t segments = 0;  // sequences of a call, at most
  int64_t logitRows = 0; // L: rows that get logits, at most
  int64_t blocks = 0;    // cache blocks of a sequence, at most
  bool isDecode() const { return kind == "decode"; }
  // Of the entry of a pipeline stage.
  std::string nameOf(int64_t stage) const { return stage ? name + ".stage" + std::to_string(stage) : name; }
};
llvm::SmallVector<Bucket> bucketsOf(const EntryOptions &options);

} // namespace k31
