// The one pipeline from a model to a plan.
#pragma once
#include "mlir/Pass/PassManager.h"
#include <string>
#include <vector>

namespace k31 {

struct PipelineOptions {
  std::string target;                 // "cpu"
  std::string mesh;                   // "tp=8,dp=2": empty is one rank
  std::string cacheDir;               // of compiled kernels; empty: none
  std::vector<std::string> cpuLevels; // of host targets; empty: all
  bool kernels = true;                // false: everything has its place, but nothing is compiled and checked
};

// Level 1 with k31.options on the module in, level 3 with offsets and machine code out.
void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

// Writes the module after each pass to DIR/NN-pass-name.mlir. The folder must exist.
void dumpAfterEachPass(mlir::PassManager &manager, const std::string &folder);

} // namespace k31
