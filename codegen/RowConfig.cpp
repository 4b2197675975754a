#include "codegen/RowConfig.h"
#include "codegen/Regions.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;
using namespace k31;
using kernels::kMaxOperands, kernels::OperandKind;

void k31::readOperand(OpReader &read, Value value, int64_t rows, int64_t cols, int64_t groups, StringRef what, int32_t &kind,
                      int32_t &type, int32_t &ld, int32_t &length) {
  std::optional<OperandKind> fits = operandKind(tensorOf(value), rows, cols, groups);
  if (!fits) {
    if (!read.failed())
      read.refuse() << what << " of type " << value.getType() << " does not broadcast over [" << rows << ", " << cols << "] in "
                    << groups << (groups == 1 ? " group" : " groups");
    return;
  }
  kind = static_cast<int32_t>(*fits);
  type = static_cast<int32_t>(read.floatType(value, what));
  bool rowwise = *fits == OperandKind::element || *fits == OperandKind::row_scalar;
  (rowwise ? ld : length) = read.number(rowwise ? leadingDim(value) : dim(value, 0), what);
}

void k31::readResults(OpReader &read, ResultRange results, int32_t &count, int32_t (&types)[kMaxOperands],
                      int32_t (&ld)[kMaxOperands]) {
  if (results.size() > static_cast<size_t>(kMaxOperands)) {
    read.refuse() << "has " << results.size() << " results; a kernel stores " << kMaxOperands;
    return;
  }
  count = static_cast<int32_t>(results.size());
  for (auto [i, result] : enumerate(results)) {
    types[i] = static_cast<int32_t>(read.floatType(result, "a result"));
    ld[i] = read.number(dim(result, 1), "a row of a result");
  }
}

bool k31::tooMany(OpReader &read, ValueRange operands) {
  if (operands.size() <= static_cast<size_t>(kMaxOperands))
    return false;
  read.refuse() << "has " << operands.size() << " operands of its region; a kernel takes " << kMaxOperands;
  return true;
}

FailureOr<kernels::row::Config> k31::rowConfig(OpReader &read, ValueRange inputs, ResultRange results, int64_t groups,
                                               Region &body) {
  kernels::row::Config c;
  const int64_t rows = dim(results[0], 0), cols = dim(results[0], 1);
  c.cols = read.number(cols, "columns");
  c.groups = read.number(groups, "groups");
  if (tooMany(read, inputs))
    return failure();
  c.inputs = static_cast<int32_t>(inputs.size());
  for (auto [i, input] : enumerate(inputs))
    readOperand(read, input, rows, cols, c.groups, "an operand", c.kind[i], c.type[i], c.ld[i], c.length[i]);
  readResults(read, results, c.outputs, c.out_type, c.out_ld);
  FailureOr<RegionPhases> phases = analyzeRegion(body);
  if (failed(phases))
    return failure();
  c.phases = phases->count();
  for (auto [p, sums] : enumerate(phases->sums))
    c.sums[p] = static_cast<int32_t>(sums.size());
  return c;
}

LogicalResult k31::insertInput(OpReader &read, kernels::row::Config &c, int32_t at, kernels::DType type) {
  if (c.inputs == kMaxOperands)
    return read.refuse() << "has " << c.inputs + 1 << " operands of its region; a kernel takes " << kMaxOperands;
  const auto insert = [&](int32_t (&field)[kMaxOperands], int32_t value) {
    std::copy_backward(field + at, field + c.inputs, field + c.inputs + 1);
    field[at] = value;
  };
  insert(c.kind, static_cast<int32_t>(OperandKind::element)), insert(c.type, static_cast<int32_t>(type));
  insert(c.ld, 0), insert(c.length, 0);
  ++c.inputs;
  return success();
}
