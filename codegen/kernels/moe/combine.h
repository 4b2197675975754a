// Sum of the rows of x that belong to a token, fp32: out[t] = sum_i weights[t, i] x[slot[t, i]], in order of i; slot -1 adds
// nothing, and without weights each is 1.
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
  int32_t weighted = 1; // 1: a weights operand is present

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("cols", &Config::cols), f("top_k", &Config::top_k), f("ld_x", &Config::ld_x),
        f("ld_out", &Config::ld_out), f("x_type", &Config::x_type), f("out_type", &Config::out_type),
        f("groups", &Config::groups), f("capacity", &Config::capacity), f("weighted", &Config::weighted);
  }
};

struct Args {
  const void *x; // [T * top_k, cols]
  void *tail[4]; // weights [T, top_k] fp32 when `weighted`; slot [T, top_k] int32; live [groups] int32; out [T, cols]

  constexpr const float *weights() const { return (const float *)tail[0]; }
  constexpr const int32_t *slot(const Config &c) const { return (const int32_t *)tail[c.weighted]; }
  constexpr LiveRows rows(const Config &c) const { return {(const int32_t *)tail[c.weighted + 1], c.groups, c.capacity}; }
  constexpr void *out(const Config &c) const { return tail[c.weighted + 2]; }
};

} // namespace k31::kernels::combine
