#include "codegen/Operands.h"
#include "codegen/CudaKernels.h"
#include "codegen/kernels/common/launch_cost.h"
#include "dialects/NN/NN.h"
#include "dialects/Support/Verify.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace mlir;

namespace k31 {

using kernels::DType;
using kernels::OperandKind;

std::optional<OperandKind> operandKind(RankedTensorType type, int64_t rows, int64_t cols, int64_t groups) {
  std::optional<Broadcast> broadcast = broadcastOf(type, rows, cols, groups);
  if (!broadcast)
    return std::nullopt;
  switch (*broadcast) {
  case Broadcast::element:
    return OperandKind::element;
  case Broadcast::row:
    return OperandKind::row_scalar;
  case Broadcast::column:
    return OperandKind::column;
  case Broadcast::columns:
    return OperandKind::column_group;
  }
  llvm_unreachable("a broadcast");
}

int64_t leadingDim(Value value) {
  while (auto view = value.getDefiningOp<nn::ColumnsOp>())
    value = view.getSource();
  return tensorOf(value).getShape().back();
}

uint64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? (type.getNumElements() * type.getElementTypeBitWidth() + 7) / 8 : 0;
}

uint64_t bytesOf(ValueRange values) {
  uint64_t bytes = 0;
  for (Value value : values)
    bytes += bytesOf(value);
  return bytes;
}

DType OpReader::floatType(Type type, StringRef what) {
  if (type.isF32())
    return DType::f32;
  if (type.isBF16())
    return DType::bf16;
  if (!bad)
    refuse() << what << " has elements of " << type << "; kernels take f32 and bf16";
  return DType::f32;
}

void OpReader::requireF32(Value value, StringRef what) {
  if (!bad && !tensorOf(value).getElementType().isF32())
    refuse() << what << " has elements of " << tensorOf(value).getElementType() << "; the kernel takes f32";
}

void OpReader::requireLimit(StringRef kernel, StringRef field, int64_t found, int64_t most, int64_t multiple) {
  if (bad || (found >= 1 && found <= most && found % multiple == 0))
    return;
  InFlightDiagnostic error = refuse() << "has " << field << " = " << found << "; the host kernel of " << kernel << " takes ";
  if (multiple > 1)
    error << "multiples of " << multiple << " up to " << most;
  else
    error << "1 to " << most;
}

int32_t OpReader::number(int64_t value, StringRef what) {
  if (!bad && (value < INT32_MIN || value > INT32_MAX))
    refuse() << what << " is " << value << "; a kernel's Config holds 32 bits";
  return static_cast<int32_t>(value);
}

// What the launch has to move and to compute at least, at the limits that the estimates of tiles use.
static std::string floorText(const Work &work) {
  const double memory = double(work.bytes) / kernels::kMemoryBytes,
               math = 2 * double(work.multiplyAdds) / (kernels::kWarpGroupFlops * kernels::kMultiprocessors);
  return formatv("{0} bytes and {1} multiply-adds: {2:f1} us at least, and {3:f1} us to launch", work.bytes, work.multiplyAdds,
                 std::max(memory, math) * 1e6, kernels::kLaunchSeconds * 1e6);
}

FailureOr<KernelSpec> OpReader::cudaSpec(StringRef name, DictionaryAttr config, const Work &work) {
  FailureOr<CudaLaunch> launch = cudaLaunch(name, config, [&] { return op->emitOpError(); });
  if (mlir::failed(launch))
    return failure();
  KernelSpec spec{name.str(), config};
  spec.workspace = launch->workspace;
  spec.tile = launch->tile, spec.grid = launch->grid, spec.block = launch->block, spec.smem = launch->smem;
  spec.maps = launch->maps, spec.mapsAt = launch->mapsAt;
  spec.choice = launch->choice, spec.reason = launch->reason, spec.candidates = launch->candidates;
  if (spec.candidates.empty() && (work.bytes || work.multiplyAdds))
    spec.reason += "; " + floorText(work);
  return spec;
}

} // namespace k31
