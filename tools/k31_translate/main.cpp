// k31-translate: plan files, checkpoints and IR into each other. For compiler developers and tests.
#include "compiler/Export/PlanFile.h"
#include "compiler/Import/ImportModel.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  k31::registerPlanTranslations(); // --plan-to-mlir, --mlir-to-plan
  k31::registerImportModel();      // --import-model
  return mlir::failed(mlir::mlirTranslateMain(argc, argv, "k31-translate: plan files, checkpoints and IR into each other\n"));
}
