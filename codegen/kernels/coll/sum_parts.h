// What the ranks said of each row, added up in their order in fp32: out[t] = sum over d of x[d * T + slot[t, d]]; slot -1 adds
// nothing.
#pragma once
#include "codegen/kernels/moe/live_rows.h"

namespace k31::kernels::sum_parts {

struct Config {
  int32_t rows = 0; // T, capacity: decides the grid
  int32_t room = 0; // the same: rows of one rank in x
  int32_t cols = 0;
  int32_t size = 1; // ranks
  DType type = DType::bf16;
  int32_t groups = 1;   // ranks whose rows follow each other in the result
  int32_t capacity = 0; // rows of each, when there are several

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("room", &Config::room), f("cols", &Config::cols), f("size", &Config::size),
        f("type", &Config::type), f("groups", &Config::groups), f("capacity", &Config::capacity);
  }
};

struct Args {
  const void *x;       // [size * T, cols]
  const int32_t *slot; // [T, size]
  const int32_t *live; // [groups] live rows of the result
  void *out;           // [T, cols]

  constexpr LiveRows rows(const Config &c) const { return {live, c.groups, c.capacity}; }
};

} // namespace k31::kernels::sum_parts
