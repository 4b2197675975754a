// Scores of a row, spread over the threads that share it: expert thread + Threads i is score i of a thread. All loads are under
// way before the first value is used.
//
// Sigmoids are the host's bit for bit (common/math.cuh), so both targets choose the same experts. A NaN score counts as -inf: the
// ids stay distinct and in range, the NaN shows up in the weights.
#pragma once
#include "codegen/kernels/common/math.cuh"
#include "codegen/kernels/common/reduce.cuh"
#include "codegen/kernels/moe/route.tile.h"

namespace k31::kernels::route {

template <Config c, int Threads> struct Scores {
  static constexpr int kPer = (c.experts + Threads - 1) / Threads;
  float logit[kPer], bias[kPer];
  float weight[kPer];   // sigmoid(logit)
  uint32_t score[kPer]; // of weight + bias, as integers of the same order; 0, below all of them, where there is no expert
  int thread;

  K31_DEVICE void load(const Args &args, int64_t row, int of_thread) {
    thread = of_thread;
    const float *logits = args.logits + row * c.ld_logits;
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      // Held within the experts where it could pass them: a branch would part the loads.
      const int e = Threads * (i + 1) <= c.experts ? thread + Threads * i : min(thread + Threads * i, c.experts - 1);
      logit[i] = logits[e];
      bias[i] = kernels::load<c.bias_type>(args.bias, e);
    }
  }
  K31_DEVICE void finish() {
    constexpr int kAtOnce = least(kPer, 4);
#pragma unroll
    for (int first = 0; first < kPer; first += kAtOnce) {
      float x[kAtOnce], y[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        x[i] = logit[min(first + i, kPer - 1)];
      host_sigmoids(x, y);
#pragma unroll
      for (int i = 0; i < kAtOnce && first + i < kPer; ++i)
        weight[first + i] = y[i];
    }
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const float s = __fadd_rn(weight[i], bias[i]);
      // + 0 makes -0 equal to +0, as comparisons of numbers do.
      const uint32_t bits = s == s ? ordered_bits(s + 0.0f) : ordered_bits(__int_as_float(0xff800000));
      score[i] = thread + Threads * i < c.experts ? bits : 0;
    }
  }
};

} // namespace k31::kernels::route
