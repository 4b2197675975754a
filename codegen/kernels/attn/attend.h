// MLA attention in latent space (absorbed form), over all earlier positions or over the selected ones.
// score(t, s) = scale (q_latent[t, h] . c(s) + q_shared[t, h] . r(s)); out[t, h] = sum_s softmax(score) c(s), fp32 softmax.
// A cache row is c [latent] then r [shared]; f8: c are its codes. One pass over the keys with a running maximum; no score is
// stored.
#pragma once
#include "codegen/kernels/common/fp8.h"

namespace k31::kernels::attend {

constexpr int32_t kMaxLatent = 512;
constexpr int32_t kMaxShared = 64;

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t heads = 0;
  int32_t latent = 512;
  int32_t shared = 64;
  int32_t ld_q = 0;        // elements between rows of q_latent; heads follow each other
  int32_t ld_shared = 0;   // elements between rows of q_shared
  int32_t head_shared = 0; // elements between heads of q_shared
  int32_t top_k = 0;       // 0: dense, else the width of the indices
  int32_t ld_out = 0;
  int32_t blocks = 0; // columns of the block table
  int32_t lse = 0;    // 1: the log-sum-exp is a second result
  float scale = 0;
  DType q_type = DType::bf16;
  DType shared_type = DType::bf16;
  DType cache_type = DType::bf16;
  DType out_type = DType::bf16;
  int32_t shared_begin = 0; // first value of the shared part in a head of q_shared

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("heads", &Config::heads), f("latent", &Config::latent), f("shared", &Config::shared),
        f("ld_q", &Config::ld_q), f("ld_shared", &Config::ld_shared), f("head_shared", &Config::head_shared),
        f("top_k", &Config::top_k), f("ld_out", &Config::ld_out), f("blocks", &Config::blocks), f("lse", &Config::lse),
        f("scale", &Config::scale), f("q_type", &Config::q_type), f("shared_type", &Config::shared_type),
        f("cache_type", &Config::cache_type), f("out_type", &Config::out_type), f("shared_begin", &Config::shared_begin);
  }
  constexpr int64_t row_bytes() const {
    return cache_type == DType::f8 ? coded_row_bytes(latent, latent + shared)
                                   : (int64_t)(latent + shared) * (cache_type == DType::bf16 ? 2 : 4);
  }
  // What the host kernel holds on its stack, after rounding up to 16 lanes.
  template <class F> constexpr void host_limits(F &&f) const {
    f("latent", latent, kMaxLatent, 1), f("shared", shared, kMaxShared, 1);
  }
};

struct Args {
  const void *q_latent; // [T, heads * latent]
  const void *q_shared; // [T, heads * head_shared]; a head's shared part starts at shared_begin
  const void *pages;    // [blocks of the pool, 256, latent + shared], f8: rows of row_bytes()
  Batch batch;
  // indices [T, top_k] when top_k > 0; out [T, heads * latent]; lse [T, heads] fp32 when lse; workspace on CUDA
  void *tail[4];
};

} // namespace k31::kernels::attend
