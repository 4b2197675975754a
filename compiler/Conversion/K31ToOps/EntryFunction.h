// The functions that entries become: what each takes and gives, by the names of the plan's entry contract.
#pragma once
#include "compiler/Conversion/K31ToOps/Buckets.h"
#include "compiler/Mesh.h"
#include "dialects/Support/Notes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace k31 {

// The ends of the model that @text has: a slice of layers may lack either.
struct TextForm {
  bool embed = false; // takes (tokens, ...), else (hidden, bank...): [T, H] each
  bool head = false;  // takes (..., logit rows) and returns logits, else returns (hidden, bank...)
};
mlir::FailureOr<TextForm> formOf(mlir::func::FuncOp text);

// A tensor type of level 1, whose rows are dynamic, with so many; other types as they are.
mlir::Type withRows(mlir::Type type, int64_t count);

// An entry's function, and its arguments behind @text's own.
struct EntryFunction {
  mlir::func::FuncOp function;
  mlir::Value live, batch, liveLogits, logitRows, sampling; // the last three: null without the head
  mlir::Value tensorRank, expertRank;                       // null when the axis has one rank
};
// The stages of a pipeline share out the ends of @text. `notes` say why the entry is as it is.
EntryFunction createEntry(mlir::OpBuilder &b, mlir::func::FuncOp text, TextForm form, const Mesh &mesh, const Bucket &bucket,
                          int64_t stage, llvm::ArrayRef<Note> notes);

} // namespace k31
