// Diagnostics of the import: every fault is named, but a broken checkpoint does not fill the screen.
#pragma once
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/base/result.h"
#include "llvm/ADT/Twine.h"

namespace k31::importer {

class Reporter {
public:
  explicit Reporter(mlir::MLIRContext &context) : context(context) {}

  // `name` is the key or the tensor that the line is about; it becomes the location.
  void error(llvm::StringRef name, const llvm::Twine &message) {
    if (errors++ < kLines)
      mlir::emitError(at(name), shown(message));
  }
  void warning(llvm::StringRef name, const llvm::Twine &message) {
    if (warnings++ < kLines)
      mlir::emitWarning(at(name), shown(message));
  }
  void note(llvm::StringRef name, const llvm::Twine &message) { mlir::emitRemark(at(name), shown(message)); }

  // Says how many lines were left out; true when nothing was wrong. `what` is what was read.
  bool finish(llvm::StringRef what) {
    if (warnings > kLines)
      mlir::emitWarning(at(what), what + ": ... and " + llvm::Twine(warnings - kLines) + " more");
    if (errors > kLines)
      mlir::emitError(at(what), what + ": ... and " + llvm::Twine(errors - kLines) + " more");
    warnings = 0;
    return errors == 0;
  }
  bool failed() const { return errors > 0; }

private:
  static std::string shown(const llvm::Twine &message) { return one_line(message.str()); }
  mlir::Location at(llvm::StringRef name) const { return mlir::NameLoc::get(mlir::StringAttr::get(&context, name)); }

  static constexpr uint64_t kLines = 20;
  mlir::MLIRContext &context;
  uint64_t errors = 0, warnings = 0;
};

} // namespace k31::importer
