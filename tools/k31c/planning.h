// From options to a plan in memory: what compile does once, and what advice tries.
#pragma once
#include "compiler/Import/ImportModel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/schema/plan_generated.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace k31::tool {

// Where users expect caches; empty when the system does not say where.
std::string defaultCacheDir();

struct CompileOptions {
  std::string model, target, mesh, activations = "bf16", kvDtype, memoryLimit, dumpDir, cacheDir = defaultCacheDir(),
                                   output = "model.k31";
  int64_t maxContext = 8192, maxBatch = 8, cacheTokens = 0, prefillChunk = 2048, logitRows = 64;
  std::string sequenceParallel = "auto", mla = "auto", overlap = "off", moeExchange = "auto", transport = "library",
              fuseSums = "auto";
  bool noCache = false;
  std::vector<std::string> cpuLevels; // best first; empty: all
  std::optional<double> mlaNormEps;
  std::string layers;              // as given
  std::optional<LayerRange> range; // the same, read
};

// Whole blocks for every sequence. At most 2^60: both options end at 2^30.
int64_t cacheTokensOf(int64_t maxContext, int64_t maxBatch);

struct PlanBytes {
  std::string bytes, error; // one of them is empty
};

// Makes plans of one checkpoint, which is read once: the plan that was asked for, others where that one does not fit. What
// ImportOptions say (model, activations, layers) is the same for all of them.
class Planning {
public:
  explicit Planning(const CompileOptions &options);
  PlanBytes makePlan(const CompileOptions &options);
  // Bytes of the arenas of a rank, from a plan without machine code; empty when the options are refused.
  std::optional<uint64_t> arenaBytes(const CompileOptions &options);

private:
  // Down to level 3, with machine code or without: why there is no module, or empty.
  std::string lower(const CompileOptions &options, bool kernels, mlir::OwningOpRef<mlir::ModuleOp> &module);

  mlir::MLIRContext context;
  ImportOptions import;
  mlir::OwningOpRef<mlir::ModuleOp> imported;
};

// Bytes of a rank's weights that are held whole beside a share of them.
uint64_t bytesHeldTwice(const plan::Plan &plan);

// "; --mesh tp=8,ep=32,node=8 (32 ranks) fits with N bytes a rank": the nearest meshes that fit, tried; empty when none does.
std::string meshAdvice(Planning &planning, const CompileOptions &options, const plan::Plan &plan, uint64_t limit);

} // namespace k31::tool
