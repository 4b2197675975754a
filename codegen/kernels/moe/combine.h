// Weighted sum of a token's expert rows, fp32: out[t] = sum_i weights[t, i] x[slot[t, i]], in order of i; slot -1 adds nothing.
#pragma once
#include "codegen/kernels/moe/live_rows.h"

namespace k31::kernels::combine {

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t cols = 0;
  int32_t top_k = 0;
  int32_t ld_x = 0;
  int32_t ld_out = 0;
  DType x_type = DType::bf16;
  DType out_type = DType::bf16;
  int32_t groups = 1;   // ranks whose rows follow each other
  int32_t capacity = 0; // rows of each, when there are several

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("cols", &Config::cols), f("top_k", &Config::top_k), f("ld_x", &Config::ld_x),
        f("ld_out", &Config::ld_out), f("x_type", &Config::x_type), f("out_type", &Config::out_type),
        f("groups", &Config::groups), f("capacity", &Config::capacity);
  }
};

struct Args {
  const void *x;        // [T * top_k, cols]
  const float *weights; // [T, top_k]
  const int32_t *slot;  // [T, top_k]
  const int32_t *live;  // [groups] live rows
  void *out;            // [T, cols]

  constexpr LiveRows rows(const Config &c) const { return {live, c.groups, c.capacity}; }
};

} // namespace k31::kernels::combine
