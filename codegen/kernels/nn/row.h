// Row-wise fused work: nn.map (no reduction) and nn.row (norms, residual mixes).
//
// A row is split into `groups` equal groups of columns; a reduction of the region runs over one group. The region is compiled
// into `phases` + 1 functions: phase p computes the contributions of the reductions of depth p from the elements and the sums
// of earlier phases; the last one computes the outputs. Elements are read again in each phase: they stay in cache.
#pragma once
#include "codegen/kernels/common/row_operand.h"

namespace k31::kernels::row {

constexpr int32_t kMaxPhases = 4;
constexpr int32_t kMaxSums = 32; // reductions of one region, all phases together

struct Config {
  int32_t rows = 0;   // T, capacity
  int32_t cols = 0;   // C
  int32_t groups = 1; // groups of columns that are reduced on their own
  int32_t inputs = 0;
  int32_t kind[kMaxOperands] = {};   // OperandKind
  int32_t type[kMaxOperands] = {};   // DType
  int32_t ld[kMaxOperands] = {};     // elements between rows
  int32_t length[kMaxOperands] = {}; // length of a column or column_group operand
  int32_t outputs = 0;
  int32_t out_type[kMaxOperands] = {}; // DType
  int32_t out_ld[kMaxOperands] = {};
  int32_t phases = 0;            // reduction depths, 0 for nn.map
  int32_t sums[kMaxPhases] = {}; // reductions in each phase

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("cols", &Config::cols), f("groups", &Config::groups), f("inputs", &Config::inputs),
        f("kind", &Config::kind), f("type", &Config::type), f("ld", &Config::ld), f("length", &Config::length),
        f("outputs", &Config::outputs), f("out_type", &Config::out_type), f("out_ld", &Config::out_ld),
        f("phases", &Config::phases), f("sums", &Config::sums);
  }
};

struct Args {
  const int32_t *live;          // [1] live rows
  void *tail[kMaxOperands * 2]; // the inputs, then the outputs
};

} // namespace k31::kernels::row
