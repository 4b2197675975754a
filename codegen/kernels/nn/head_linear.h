// One small matrix a head: out[t, h] = x[t, h] W[h]^T, or x[t, h] W[h] when `transposed`.
// MLA's absorbed form: q_n [128] times W_UK [128, 512] (transposed), latent sums [512] times W_UV [128, 512].
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::head_linear {

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t heads = 0;
  int32_t in = 0;         // values of one head of x
  int32_t out = 0;        // values of one head of the result
  int32_t transposed = 0; // 0: W[h] is [out, in]; 1: W[h] is [in, out]
  int32_t ld_x = 0;       // elements between rows of x
  int32_t head_x = 0;     // elements between heads of x
  int32_t head_w = 0;     // elements between heads of W
  int32_t w_begin = 0;    // elements before W[0]
  int32_t ld_out = 0;     // elements between rows of out; heads follow each other
  DType x_type = DType::bf16;
  DType w_type = DType::bf16;
  DType out_type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("heads", &Config::heads), f("in", &Config::in), f("out", &Config::out),
        f("transposed", &Config::transposed), f("ld_x", &Config::ld_x), f("head_x", &Config::head_x),
        f("head_w", &Config::head_w), f("w_begin", &Config::w_begin), f("ld_out", &Config::ld_out), f("x_type", &Config::x_type),
        f("w_type", &Config::w_type), f("out_type", &Config::out_type);
  }
};

struct Args {
  const void *x;       // [T, heads * head_x]
  const void *w;       // [heads, ...]
  const int32_t *live; // [1] live rows
  void *out;           // [T, heads * out]
};

} // namespace k31::kernels::head_linear
