// The rows of this rank: out[t] = x[coordinate * share + t].
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::rows {

struct Config {
  int32_t share = 0; // rows of a rank, capacity
  int32_t cols = 0;
  int32_t ld_x = 0;
  DType type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("share", &Config::share), f("cols", &Config::cols), f("ld_x", &Config::ld_x), f("type", &Config::type);
  }
};

struct Args {
  const void *x;             // [ranks * share, cols]
  const int32_t *live;       // [1] live rows of the result
  const int32_t *coordinate; // [1] of this rank
  void *out;                 // [share, cols]
};

} // namespace k31::kernels::rows
