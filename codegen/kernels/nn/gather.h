// Chosen rows: out[i] = x[index[i]].
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::gather {

struct Config {
  int32_t rows = 0; // L, capacity of the result
  int32_t cols = 0;
  int32_t ld_x = 0;
  int32_t ld_out = 0;
  DType type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("cols", &Config::cols), f("ld_x", &Config::ld_x), f("ld_out", &Config::ld_out),
        f("type", &Config::type);
  }
};

struct Args {
  const void *x;        // [T, cols]
  const int32_t *index; // [L]
  const int32_t *live;  // [1] live rows of the result
  void *out;            // [L, cols]
};

} // namespace k31::kernels::gather
