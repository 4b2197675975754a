#include "compiler/Pipeline.h"
#include "compiler/Passes.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

void k31::buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
  //===-- level 1: the model as published -------------------------------------------------------------------------------===//
  // The mesh stands on the module before anything is split over it; what it cannot hold is refused here, before any work.
  manager.addPass(createAssignParallelism({options.mesh}));

  //===-- level 2: what one rank computes -------------------------------------------------------------------------------===//
  // One function a bucket, static shapes. The only pass that knows both the architecture and the mesh.
  manager.addPass(createConvertK31ToOps());
  // Collectives over one rank fold away, and equal sub-expressions of a body become one, so that fusion sees single uses.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Elementwise work joins the ops next to it, products of the same rows become one: fewer launches, fewer trips through memory.
  manager.addPass(createFuseOps());
  // What fusion left without users goes, so that no kernel is chosen for it.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Shapes and fusions are final: each op gets its kernel, Config and split.
  manager.addPass(createSelectKernels({options.target}));

  //===-- level 3: what the device is told to do ------------------------------------------------------------------------===//
  // Values become buffers, layers are written out. Needs every op's kernel, since arguments and workspaces follow from it.
  manager.addPass(createConvertOpsToPlan());
  // Streams and events come before memory: two buffers may share bytes only when their commands are ordered.
  manager.addPass(createSchedule());
  manager.addPass(createAssignMemory());
  if (!options.kernels)
    return;
  // Machine code depends on Configs and regions alone; it comes late so that faults of the plan itself show sooner.
  llvm::SmallVector<std::string> levels(options.cpuLevels.begin(), options.cpuLevels.end());
  manager.addPass(createCompileKernels({options.target, options.cacheDir, levels}));
  // The last word, over exactly what is exported.
  manager.addPass(createCheckPlan());
}

namespace {

struct Dumper : PassInstrumentation {
  explicit Dumper(std::string folder) : folder(std::move(folder)) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    if (!isa<ModuleOp>(op))
      return;
    std::string path = llvm::formatv("{0}/{1}{2}-{3}.mlir", folder, number < 10 ? "0" : "", number, pass->getArgument());
    ++number;
    std::error_code error;
    llvm::raw_fd_ostream out(path, error);
    if (!error)
      op->print(out, OpPrintingFlags().enableDebugInfo(false).elideLargeElementsAttrs());
    if (error || out.has_error()) {
      emitError(op->getLoc()) << "cannot write '" << path << "': " << (error ? error : out.error()).message()
                              << "; make room there";
      out.clear_error();
    }
  }

  std::string folder;
  int number = 1;
};

} // namespace

void k31::dumpAfterEachPass(PassManager &manager, const std::string &folder) {
  manager.addInstrumentation(std::make_unique<Dumper>(folder));
}
