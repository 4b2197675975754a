// How tokens reach the ranks of their experts: chosen once for all layers of a bucket, by cost.
#pragma once
#include "compiler/Conversion/K31ToOps/Buckets.h"
#include "compiler/Mesh.h"
#include "dialects/K31/K31.h"
#include "dialects/Support/Notes.h"

namespace k31 {

// What --moe-exchange names, besides auto.
enum class ExpertForm {
  replicate, // every rank of an expert group sees all rows, and the sums are reduced
  dispatch,  // a rank sends each of its rows to the ranks that hold its experts, and gets their sums back
  twoLevel,  // the same by way of one rank on each host, where rows fan out and sums meet
};
llvm::StringRef nameOf(ExpertForm form); // "two-level"

struct ExpertChoice {
  ExpertForm form = ExpertForm::replicate;
  std::optional<Note> why; // none where experts are not shared out
};

// What the layers of a bucket do. `wanted` is k31.options' moe_exchange; where it cannot be had the note says why.
ExpertChoice chooseExpertForm(const Mesh &mesh, const EntryOptions &options, const Bucket &bucket, mlir::Type activation,
                              model::LatentMoEOp op);

} // namespace k31
