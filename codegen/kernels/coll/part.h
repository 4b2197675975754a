// The columns of this rank: out[t, j] = x[t, coordinate * part + j], zero past the columns of x.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::part {

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t cols = 0; // of x
  int32_t part = 0; // of the result
  int32_t ld_x = 0;
  DType type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("cols", &Config::cols), f("part", &Config::part), f("ld_x", &Config::ld_x),
        f("type", &Config::type);
  }
};

struct Args {
  const void *x;             // [T, cols]
  const int32_t *live;       // [1] live rows
  const int32_t *coordinate; // [1] of this rank
  void *out;                 // [T, part]

  // Columns of x that this rank has.
  constexpr int32_t width(const Config &c) const {
    const int64_t left = c.cols - (int64_t)*coordinate * c.part;
    return left < 0 ? 0 : left < c.part ? (int32_t)left : c.part;
  }
};

} // namespace k31::kernels::part
