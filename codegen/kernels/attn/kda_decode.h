// A decode step of Kimi Delta Attention from the projections to the gated norm in one kernel: attn.short_conv with its region
// over q, k and v, attn.kda token by token, and the row op over the heads (attn/short_conv.h, attn/kda.h, nn/row.h).
//
// The same as the three one behind the other, bit for bit on the host: what the convolution and the recurrence give is rounded to
// the element types that they would store. Neither is stored.
#pragma once
#include "codegen/kernels/attn/kda.h"
#include "codegen/kernels/attn/short_conv.h"
#include "codegen/kernels/nn/row.h"

namespace k31::kernels::kda_decode {

constexpr int32_t kMaxCudaDim = 128; // of a head: a block of the CUDA kernel has its state in registers

struct Config {
  kernels::short_conv::Config conv; // channels: q, k and v of all heads, one behind the other; out_type that of kda.qkv_type
  kernels::kda::Config kda;         // chunk 1; ld_qkv and ld_out: nothing in memory has them
  kernels::row::Config row;         // groups: the heads
  int32_t rows = 0;                 // T, capacity: the grid on CUDA follows from it; the Configs above have 0
  int32_t at = 0;                   // the input of the row op that is the recurrence's result

  template <class F> static void fields(F &&f) {
    f("conv", &Config::conv), f("kda", &Config::kda), f("row", &Config::row), f("rows", &Config::rows), f("at", &Config::at);
  }
  template <class F> constexpr void host_limits(F &&f) const { conv.host_limits(f), kda.host_limits(f); }
};

// The functions of the row op come first in the region; the next one is the convolution's.
constexpr int32_t activation_phase(const Config &c) { return c.row.phases + 1; }

struct Args {
  const void *x;     // [T, 3 heads * head_dim]
  const void *w;     // [3 heads * head_dim, taps]
  void *window;      // [slots, taps - 1, 3 heads * head_dim]
  const float *g;    // [T, heads * head_dim] log decay, at most 0
  const float *beta; // [T, heads] in (0, 1)
  float *state;      // [slots, heads, key, value]
  Batch batch;
  void *tail[2 * kMaxOperands]; // the inputs of the row op without the recurrence's result, its outputs

  constexpr void *input(const Config &c, int i) const { return i == c.at ? nullptr : tail[i - (i > c.at)]; }
  constexpr void *output(const Config &c, int i) const { return tail[c.row.inputs - 1 + i]; }
};

} // namespace k31::kernels::kda_decode
