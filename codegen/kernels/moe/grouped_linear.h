// One matrix an expert: rows offsets[e] .. offsets[e + 1] of x times W[e]^T, then the fused region (as nn.linear's epilogue).
// MXFP4: packed [E, N, K / 2] holds two E2M1 codes a byte, low nibble the even column; scale [E, N, K / 32] is E8M0
// (2^(s - 127), 255 is NaN). Weights are read packed. bf16 weights [E, N, K] have no scale operand.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::grouped_linear {

struct Config {
  int32_t rows = 0; // capacity of x: T * top_k
  int32_t experts = 0;
  int32_t n = 0; // rows of one expert's W
  int32_t k = 0;
  int32_t mxfp4 = 1;
  int32_t pair = 0;     // 1: gate and up interleaved in groups of 16 rows; the result has n / 2 columns
  int32_t epilogue = 0; // 1: a region is attached
  int32_t ld_x = 0;
  int32_t ld_out = 0;
  DType x_type = DType::bf16;
  DType w_type = DType::bf16; // when not mxfp4
  DType out_type = DType::bf16;
  int32_t ranks = 1; // that share the model's experts: about rows / ranks of the capacity come here

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("experts", &Config::experts), f("n", &Config::n), f("k", &Config::k), f("mxfp4", &Config::mxfp4),
        f("pair", &Config::pair), f("epilogue", &Config::epilogue), f("ld_x", &Config::ld_x), f("ld_out", &Config::ld_out),
        f("x_type", &Config::x_type), f("w_type", &Config::w_type), f("out_type", &Config::out_type), f("ranks", &Config::ranks);
  }
};

struct Args {
  const void *x; // [rows, K]
  const void *w; // [E, N, K / 2] codes, or [E, N, K]
  void *tail[3]; // scale [E, N, K / 32] when mxfp4; offsets [E + 1] int32; out [rows, N or N / 2]
};

} // namespace k31::kernels::grouped_linear
