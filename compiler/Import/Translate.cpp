#include "compiler/Import/ImportModel.h"
#include "dialects/AllDialects.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace k31 {

void registerImportModel() {
  static llvm::cl::opt<std::string> activations("activations", llvm::cl::desc("with --import-model: bf16 or fp32"),
                                                llvm::cl::init("bf16"));
  static llvm::cl::opt<std::string> layers("layers", llvm::cl::desc("with --import-model: a slice A:B of the layers"));
  static TranslateToMLIRRegistration registration(
      "import-model", "a checkpoint, given by its config.json, to level-1 IR",
      [](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
        // Only the file's place is of use: the import reads the folder.
        StringRef path = sources.getMemoryBuffer(sources.getMainFileID())->getBufferIdentifier();
        StringRef folder = llvm::sys::path::parent_path(path);
        ImportOptions options;
        options.modelDir = folder.empty() ? "." : folder.str();
        options.activations = activations;
        if (!layers.empty() && !(options.layers = parseLayerRange(layers))) {
          emitError(UnknownLoc::get(context), "--layers " + layers + ": expected A:B with 0 <= A < B");
          return nullptr;
        }
        auto module = importModel(*context, options);
        if (failed(module))
          return nullptr;
        return OwningOpRef<Operation *>(module->release().getOperation());
      },
      [](DialectRegistry &registry) { registerDialects(registry); });
}

} // namespace k31
