#include "compiler/Import/ModelConfig.h"
#include "mlir/IR/Diagnostics.h"
#include "tools/dev/fuzz/targets.h"

using namespace k31::importer;

void k31::fuzz::config(Bytes bytes) {
  // Of its own: names of faults stay in a context for good.
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  size_t errors = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    require_one_line(diagnostic.str());
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
  });
  const auto config = parseModelConfig(context, text(bytes), "config.json");
  if (llvm::failed(config))
    return require(errors > 0, "a refused config has its reason");
  require(errors == 0, "an accepted config has no fault");
  const auto layers = static_cast<size_t>(config->layers);
  require(config->layers >= 1 && config->full.size() == layers, "every layer has its kind of attention");
  require(!config->dsa || config->dsa->layer.size() == layers, "every layer has an indexer or none");
  require(config->hidden >= 1 && config->vocab >= 1 && config->moe.experts >= config->moe.topK, "sizes are those of a model");
  require(!familyName(config->family).empty(), "the family has a name");
}
