#include "compiler/Export/PlanFile.h"
#include "dialects/AllDialects.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "runtime/base/plan_trailer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

static OwningOpRef<Operation *> planToMlir(llvm::SourceMgr &sources, MLIRContext *context) {
  const llvm::MemoryBuffer *file = sources.getMemoryBuffer(sources.getMainFileID());
  auto flatbuffer = k31::unseal(std::as_bytes(std::span(file->getBufferStart(), file->getBufferSize())));
  if (!flatbuffer) {
    emitError(FileLineColLoc::get(context, file->getBufferIdentifier(), 0, 0)) << flatbuffer.error().message;
    return nullptr;
  }
  OwningOpRef<ModuleOp> module = k31::importPlan(*flatbuffer, file->getBufferIdentifier(), context);
  return module ? OwningOpRef<Operation *>(module.release().getOperation()) : nullptr;
}

static LogicalResult mlirToPlan(Operation *op, llvm::raw_ostream &out) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError("a plan is a module of plan ops");
  FailureOr<std::string> flatbuffer = k31::exportPlan(module);
  if (failed(flatbuffer))
    return failure();
  out << k31::seal(std::as_bytes(std::span(*flatbuffer)));
  return success();
}

void k31::registerPlanTranslations() {
  auto dialects = [](DialectRegistry &registry) { registerDialects(registry); };
  static TranslateToMLIRRegistration toMlir("plan-to-mlir", "a plan file to IR of the plan dialect", planToMlir, dialects);
  static TranslateFromMLIRRegistration fromMlir("mlir-to-plan", "IR of the plan dialect, with offsets and code, to a plan file",
                                                mlirToPlan, dialects);
}
