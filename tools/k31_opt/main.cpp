// k31-opt: an mlir-opt with the dialects and passes of the project.
#include "compiler/Passes.h"
#include "dialects/AllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  k31::registerDialects(registry);
  k31::registerK31Passes();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "k31-opt: IR of the k31 compiler, all levels\n", registry));
}
