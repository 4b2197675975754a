// How the ranks of a tp group share the rows of a bucket: chosen by cost, with a note of the costs that were compared.
#pragma once
#include "compiler/Conversion/K31ToOps/OpsBuilder.h"
#include "compiler/LinkCost.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace k31 {

class RowChooser {
public:
  // Counts what @text does: each body as often as `text` calls it.
  RowChooser(mlir::ModuleOp module, mlir::func::FuncOp text, mlir::Type activation, ModuleState &state);

  // k31.options: sequence_parallel and mla, each "auto" unless given. A diagnostic when one is none of the known words.
  mlir::LogicalResult readWishes();
  // Sets streamRows and byQueryRows of the bucket; returns why, for its entries.
  llvm::SmallVector<Note> choose(Bucket &bucket);

private:
  double exchange(Exchange what, int64_t bytes) const; // seconds, over tp
  Note chooseStream(Bucket &bucket);
  Note chooseAttention(Bucket &bucket);

  mlir::ModuleOp module;
  ModuleState &state;
  const Target::Speeds &speeds;
  const int64_t activationBytes;
  int64_t hidden = 0;
  int64_t streamRows = 0; // rows of `hidden` that mixes, norms and additions read and write, for each token
  int64_t sums = 0;       // ends of attention and of experts or MLPs: each is added up over tp
  struct {
    int64_t layers = 0, heads = 0;
    int64_t queryBytes = 0;                         // of the weights that heads share out, of one layer
    int64_t latent = 0, shared = 0;                 // of a cache row
    int64_t topK = 0, indexHeads = 0, indexDim = 0; // 0: over all positions
  } mla;
  std::string streamWish = "auto", mlaWish = "auto";
};

} // namespace k31
