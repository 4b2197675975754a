// Router: scores = sigmoid(logits), the top_k experts of scores + bias (ties: lower expert), weights from the unbiased scores.
// weights are divided by their sum (+ 1e-20) when `renormalize`, then times `scale`. Dead rows are not written.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::route {

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t experts = 0;
  int32_t top_k = 0;
  int32_t renormalize = 1;
  float scale = 1;
  int32_t ld_logits = 0;
  DType bias_type = DType::f32;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("experts", &Config::experts), f("top_k", &Config::top_k), f("renormalize", &Config::renormalize),
        f("scale", &Config::scale), f("ld_logits", &Config::ld_logits), f("bias_type", &Config::bias_type);
  }
};

struct Args {
  const float *logits; // [T, experts]
  const void *bias;    // [experts], selects only
  const int32_t *live; // [1] live rows
  int32_t *ids;        // [T, top_k], in order of the biased score
  float *weights;      // [T, top_k]
};

} // namespace k31::kernels::route
