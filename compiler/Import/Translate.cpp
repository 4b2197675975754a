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
  static TranslateToMLIRRegistration registration(
      "import-model", "a checkpoint, given by its config.json, to level-1 IR",
      [](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
        // Only the file's place is of use: the import reads the folder.
        StringRef path = sources.getMemoryBuffer(sources.getMainFileID())->getBufferIdentifier();
        StringRef folder = llvm::sys::path::parent_path(path);
        ImportOptions options;
        options.modelDir = folder.empty() ? "." : folder.str();
        options.activations = activations;
        auto module = importModel(*context, options);
        if (failed(module))
          return nullptr;
        return OwningOpRef<Operation *>(module->release().getOperation());
      },
      [](DialectRegistry &registry) { registerDialects(registry); });
}

} // namespace k31
