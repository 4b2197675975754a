// 16 lanes of an operand of a fused region, by the way it broadcasts over a [T, C] tile (row_operand.h).
#pragma once
#include "codegen/kernels/common/host.h"
#include "codegen/kernels/common/row_operand.h"

namespace k31::kernels {

struct Operand {
  OperandKind kind;
  DType type;
  int64_t ld;     // elements between rows (element and row_scalar kinds)
  int64_t length; // values of a column or column_group operand
};

// Values of row `row` and columns [col, col + n) of a tile of `cols` columns; n in 1..16, the lanes past it are zero or a
// repeated value, never read from memory.
K31_INLINE f32x16 load_operand(const void *p, Operand op, int64_t cols, int64_t row, int64_t col, int n) {
  if (op.kind == OperandKind::element)
    return load_part(p, op.type, row * op.ld + col, n);
  if (op.kind == OperandKind::row_scalar)
    return splat(load(p, op.type, row * op.ld));
  if (op.kind == OperandKind::column) {
    if (op.length == cols)
      return load_part(p, op.type, col, n);
    if (op.length % kLanes == 0 && col % kLanes == 0)
      return load_part(p, op.type, col % op.length, n);
    f32x16 v = splat(0);
    for (int l = 0; l < n; ++l)
      v[l] = load(p, op.type, (col + l) % op.length);
    return v;
  }
  int64_t group = cols / op.length; // neighbouring columns that share one value
  if (group % kLanes == 0 && col % kLanes == 0)
    return splat(load(p, op.type, col / group));
  f32x16 v = splat(0);
  for (int l = 0; l < n; ++l)
    v[l] = load(p, op.type, (col + l) / group);
  return v;
}

} // namespace k31::kernels
