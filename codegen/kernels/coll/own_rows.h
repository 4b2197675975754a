// The rows of this rank: out[t] = x[coordinate * share + t] for t < share, and how many of them are live.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::own_rows {

struct Config {
  int32_t cols = 0;  // values of a row
  int32_t share = 0; // rows of a rank
  int32_t ld_x = 0;
  DType type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("cols", &Config::cols), f("share", &Config::share), f("ld_x", &Config::ld_x), f("type", &Config::type);
  }
};

struct Args {
  const void *x;             // [T, cols]
  const int32_t *live;       // [1] live rows of x
  const int32_t *coordinate; // [1] of this rank
  void *out;                 // [share, cols]
  int32_t *own_live;         // [1]

  constexpr int64_t first(const Config &c) const { return (int64_t)*coordinate * c.share; }
  constexpr int32_t own(const Config &c) const {
    const int64_t left = *live - first(c);
    return left < 0 ? 0 : left < c.share ? (int32_t)left : c.share;
  }
};

} // namespace k31::kernels::own_rows
