// Kimi Delta Attention: q and k normalised per head, then for each token, per head with state S [key, value] in fp32:
//   S <- diag(exp(g)) S;  u = k^T S;  S <- S + beta k (v - u);  o = q^T S.
// q is scaled by head_dim^-0.5 after its normalisation x / sqrt(sum x^2 + 1e-6).
// Long segments use the chunk form (section 3.1 of the model's description): exact algebra, other order of sums.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::kda {

constexpr int32_t kMaxDim = 256;

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t heads = 0;
  int32_t head_dim = 128; // keys and values of a head
  int32_t ld_qkv = 0;     // elements between rows of q, k and v: they are column ranges of one tensor, or three
  int32_t ld_g = 0;
  int32_t ld_beta = 0;
  int32_t ld_out = 0;
  int32_t chunk = 16; // tokens of a chunk; 1: token by token
  DType qkv_type = DType::bf16;
  DType out_type = DType::bf16;

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("heads", &Config::heads), f("head_dim", &Config::head_dim), f("ld_qkv", &Config::ld_qkv),
        f("ld_g", &Config::ld_g), f("ld_beta", &Config::ld_beta), f("ld_out", &Config::ld_out), f("chunk", &Config::chunk),
        f("qkv_type", &Config::qkv_type), f("out_type", &Config::out_type);
  }
  // Whole vectors of 16 lanes; a chunk of tokens is on the host kernel's stack.
  template <class F> constexpr void host_limits(F &&f) const { f("head_dim", head_dim, kMaxDim, 16); }
};

struct Args {
  const void *q;     // [T, heads * head_dim]
  const void *k;     // [T, heads * head_dim]
  const void *v;     // [T, heads * head_dim]
  const float *g;    // [T, heads * head_dim] log decay, at most 0
  const float *beta; // [T, heads] in (0, 1)
  float *state;      // [slots, heads, key, value]
  Batch batch;
  void *out; // [T, heads * head_dim]
};

} // namespace k31::kernels::kda
