// k31-opt: an mlir-opt with the dialects and passes of the project.
#include "dialects/AllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#ifdef K31_OPT_PASSES
#include "compiler/Passes.h"
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  k31::registerDialects(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  mlir::registerPrintIRPass();
#ifdef K31_OPT_PASSES
#include K31_OPT_PASSES
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "k31-opt: IR of the k31 compiler, all levels\n", registry));
}
