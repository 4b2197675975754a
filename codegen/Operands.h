// What the models read off the operands of an op: shapes, element types, views, the way an operand broadcasts.
#pragma once
#include "codegen/ConfigFields.h"
#include "codegen/Cost.h"
#include "codegen/Target.h"
#include "codegen/kernels/common/row_operand.h"
#include "codegen/kernels/common/types.h"
#include "dialects/Interfaces/KernelOp.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace k31 {

// The way an operand of this type broadcasts over [rows, cols] tiles that are reduced in `groups` column groups (nn's
// description), or nothing when its shape does not fit.
std::optional<kernels::OperandKind> operandKind(mlir::RankedTensorType type, int64_t rows, int64_t cols, int64_t groups);

// Elements between rows of [T, C] in memory: nn.columns is looked through.
int64_t leadingDim(mlir::Value value);

inline mlir::RankedTensorType tensorOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
inline int64_t dim(mlir::Value value, int i) { return tensorOf(value).getDimSize(i); }

uint64_t bytesOf(mlir::Value value); // packed types rounded up
uint64_t bytesOf(mlir::ValueRange values);

// Collects the first thing about an op that no kernel can do.
class OpReader {
public:
  OpReader(mlir::Operation *op, const Target &target) : target(target), op(op) {}

  // The capacity of a bucket as kernels see it. The grid of a CUDA kernel follows from it. On the host live rows are data: one
  // kernel serves all buckets.
  int32_t rows(int64_t capacity) { return target.isCuda() ? number(capacity, "rows") : 0; }
  // The same for host kernels with tiles of several rows: the capacity only drops those that are taller (six rows at most). One
  // row has a kernel of its own, all other buckets share one.
  int32_t tileRows(int64_t capacity) { return target.isCuda() ? number(capacity, "rows") : capacity == 1 ? 1 : 8; }

  // The element type, which must be f32 or bf16.
  kernels::DType floatType(mlir::Type type, llvm::StringRef what);
  kernels::DType floatType(mlir::Value value, llvm::StringRef what) { return floatType(tensorOf(value).getElementType(), what); }
  // As a cache stores its values: codes too.
  kernels::DType cacheType(mlir::Type element, llvm::StringRef what) {
    return llvm::isa<mlir::Float8E4M3FNType>(element) ? kernels::DType::f8
           : element.isInteger(8)                     ? kernels::DType::i8
                                                      : floatType(element, what);
  }
  void requireF32(mlir::Value value, llvm::StringRef what);
  int32_t number(int64_t value, llvm::StringRef what); // fits 32 bits
  mlir::InFlightDiagnostic refuse() {
    bad = true;
    return op->emitOpError();
  }

  // The spec, or failure when something was refused, by a limit that the kernel's Config states too. `split` and `workspace` are
  // the host's; a CUDA kernel brings its own.
  template <class Config>
  llvm::FailureOr<KernelSpec> spec(llvm::StringRef name, const Config &config, const Split &split, uint64_t workspace = 0) {
    if constexpr (requires { config.host_limits([](const char *, int64_t, int64_t, int64_t) {}); })
      if (!target.isCuda())
        config.host_limits([&](const char *field, int64_t found, int64_t most, int64_t multiple) {
          requireLimit(name, field, found, most, multiple);
        });
    if (bad)
      return llvm::failure();
    mlir::DictionaryAttr fields = configToDictionary(op->getContext(), config);
    if (target.isCuda())
      return cudaSpec(name, fields, split.work);
    return KernelSpec{name.str(), fields, split.tasks, workspace, tasksText(split.tasks), split.reason, split.candidates};
  }
  bool failed() const { return bad; }

  const Target &target;

private:
  void requireLimit(llvm::StringRef kernel, llvm::StringRef field, int64_t found, int64_t most, int64_t multiple);
  llvm::FailureOr<KernelSpec> cudaSpec(llvm::StringRef name, mlir::DictionaryAttr config, const Work &work);

  mlir::Operation *op;
  bool bad = false;
};

// How work that reads and writes the bytes of `value` once is cut, into `units` parts at most.
inline Split splitCopy(mlir::Value value, int64_t units) { return splitWork({0, 2 * bytesOf(value), uint64_t(units)}); }

// The groups of a kernel's rows (codegen/kernels/moe/live_rows.h).
template <class Config> void readGroups(OpReader &read, mlir::Value live, int64_t rows, Config &config) {
  config.groups = read.number(dim(live, 0), "groups of rows");
  config.capacity = config.groups > 1 ? read.number(rows / config.groups, "rows of a group") : 0;
}

} // namespace k31
