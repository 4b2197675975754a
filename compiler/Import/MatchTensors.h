// Finds every tensor of the table in the checkpoint, and nothing else.
#pragma once
#include "compiler/Import/Reporter.h"
#include "compiler/Import/TensorTable.h"
#include "runtime/base/safetensors.h"

namespace k31::importer {

struct MatchedTensor {
  TensorSpec spec;
  std::string dtype;            // as in the header, the same for all
  std::vector<int32_t> files;   // one when all are in one file, else one a tensor
  std::vector<int64_t> offsets; // from the start of the file
};

struct Match {
  std::string prefix;       // of the text tensors: "language_model." or none
  std::vector<bool> packed; // per layer: its routed experts are MXFP4
  std::vector<MatchedTensor> tensors;
  int64_t visionTensors = 0; // found and left out
};

// Faults are one line a tensor.
llvm::FailureOr<Match> matchTensors(const ModelConfig &config, const Checkpoint &checkpoint, Reporter &reporter);

// Keeps what layers [begin, end) of `layers` use, and says on one line what else the checkpoint has. The embedding belongs to the
// first layer; the last norm, the last mix and the head belong to the last one.
void keepLayers(Match &match, int64_t begin, int64_t end, int64_t layers, Reporter &reporter);

} // namespace k31::importer
