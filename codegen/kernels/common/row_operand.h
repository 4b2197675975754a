// Operands of fused regions: how an operand's shape broadcasts over a [T, C] tile. Shared by nn.row, nn.map and epilogues.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels {

constexpr int32_t kMaxOperands = 24;

enum class OperandKind : int32_t {
  element = 0,      // [T, C]: one value an element
  row_scalar = 1,   // [T, 1]: one value a row
  column = 2,       // [C'] with C' dividing C: value of column c is v[c mod C'] (C' = C, or one head repeated)
  column_group = 3, // [G] with G dividing C, one value a group of C / G neighbouring columns: v[c / (C / G)]
};

} // namespace k31::kernels
