// y = epilogue(x W^T): rows of x [T, K] times the rows of W [N, K], fp32 sums.
//
// The epilogue is a fused region, elementwise over the output: element 0 (and 1 with `pair`) is the sum, then one element an
// extra operand. With `pair` the rows of W alternate in groups of 16 (16 of the first matrix, 16 of the second), the region
// takes both sums, and the outputs have N / 2 columns.
//
// Without an epilogue several outputs share out the columns of the sums: output i has the next out_ld[i] of them, and each begins
// at a multiple of 16. They are products of the same rows in one launch; x is read once.
#pragma once
#include "codegen/kernels/common/row_operand.h"

namespace k31::kernels::linear {

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t n = 0;    // rows of W
  int32_t k = 0;
  int32_t pair = 0;     // 1: gate and up interleaved
  int32_t epilogue = 0; // 1: a region is attached; 0: the sum is stored
  DType x_type = DType::bf16;
  DType w_type = DType::bf16;
  int32_t ld_x = 0;                      // elements between rows of x
  int32_t extras = 0;                    // extra operands of the epilogue
  int32_t extra_kind[kMaxOperands] = {}; // OperandKind
  int32_t extra_type[kMaxOperands] = {}; // DType
  int32_t extra_ld[kMaxOperands] = {};   // elements between rows (element and row_scalar kinds)
  int32_t extra_cols[kMaxOperands] = {}; // length of a column operand
  int32_t outputs = 1;                   // results of the region
  int32_t out_type[kMaxOperands] = {};   // DType
  int32_t out_ld[kMaxOperands] = {};     // elements between rows of each output

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("n", &Config::n), f("k", &Config::k), f("pair", &Config::pair), f("epilogue", &Config::epilogue),
        f("x_type", &Config::x_type), f("w_type", &Config::w_type), f("ld_x", &Config::ld_x), f("extras", &Config::extras),
        f("extra_kind", &Config::extra_kind), f("extra_type", &Config::extra_type), f("extra_ld", &Config::extra_ld),
        f("extra_cols", &Config::extra_cols), f("outputs", &Config::outputs), f("out_type", &Config::out_type),
        f("out_ld", &Config::out_ld);
  }
};

// Without an epilogue: the column of the sums with which output i begins, and the output that has column `col`.
constexpr int32_t output_begin(const Config &c, int32_t i) {
  int32_t begin = 0;
  for (int32_t before = 0; before < i; ++before)
    begin += c.out_ld[before];
  return begin;
}
struct OutputColumn {
  int32_t output, col;
};
constexpr OutputColumn output_column(const Config &c, int32_t col) {
  int32_t output = 0;
  for (; output + 1 < c.outputs && col >= c.out_ld[output]; ++output)
    col -= c.out_ld[output];
  return {output, col};
}

struct Args {
  const void *x;                // [T, K]
  const void *w;                // [N, K]
  const int32_t *live;          // [1] live rows
  void *tail[kMaxOperands * 2]; // the extra operands, then the outputs
};

} // namespace k31::kernels::linear
