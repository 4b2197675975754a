// Causal depthwise convolution over the tokens of each segment, then the fused region (SiLU in this family).
// y_t[c] = region(sum_j w[c, j] x_{t-taps+1+j}[c]), fp32 sums; the inputs before a segment come from its window slot.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::short_conv {

constexpr int32_t kMaxTaps = 8;

struct Config {
  int32_t rows = 0;     // T, capacity
  int32_t channels = 0; // C
  int32_t taps = 4;
  int32_t ld_x = 0;
  int32_t ld_out = 0;
  int32_t epilogue = 0; // 1: a region is attached
  DType x_type = DType::bf16;
  DType w_type = DType::f32;
  DType window_type = DType::bf16;
  DType out_type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("channels", &Config::channels), f("taps", &Config::taps), f("ld_x", &Config::ld_x),
        f("ld_out", &Config::ld_out), f("epilogue", &Config::epilogue), f("x_type", &Config::x_type),
        f("w_type", &Config::w_type), f("window_type", &Config::window_type), f("out_type", &Config::out_type);
  }
  // The taps of a channel block stay in the host kernel's registers.
  template <class F> constexpr void host_limits(F &&f) const { f("taps", taps, kMaxTaps, 1); }
};

struct Args {
  const void *x; // [T, C]
  const void *w; // [C, taps]; the last tap meets the current token
  void *window;  // [slots, taps - 1, C]: the inputs before the segment, oldest first
  Batch batch;
  void *out; // [T, C]
};

} // namespace k31::kernels::short_conv
