// Columns of the ranks side by side, behind an all_gather: out[t, s * part + j] = x[s * T + t, j], T being the capacity. The last
// part ends where `cols` does.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::join {

struct Config {
  int32_t capacity = 0; // T: rows of one rank in x
  int32_t part = 0;     // columns of one rank
  int32_t cols = 0;     // of the result, at most size * part
  int32_t size = 1;     // ranks
  DType type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("capacity", &Config::capacity), f("part", &Config::part), f("cols", &Config::cols), f("size", &Config::size),
        f("type", &Config::type);
  }
};

struct Args {
  const void *x;       // [size * T, part]
  const int32_t *live; // [1] live rows
  void *out;           // [T, cols]
};

} // namespace k31::kernels::join
