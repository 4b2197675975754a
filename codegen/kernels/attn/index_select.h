// DSA's lightning indexer: the top_k keys of each token, exactly.
// I(t, s) = sum_h w[t, h] relu(scale q[t, h] . k(s)) for s <= t; higher score first, equal scores: lower position first.
// Zero scores are +0.0 before any comparison. Indices are positions in the sequence, ascending, padded with -1.
#pragma once
#include "codegen/kernels/common/fp8.h"

namespace k31::kernels::index_select {

constexpr int32_t kMaxHeads = 128;
constexpr int32_t kMaxDim = 256;
constexpr int32_t kMaxQuery = 64 * 256;

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t heads = 0;
  int32_t head_dim = 128;
  int32_t top_k = 0;
  int32_t max_context = 0; // positions that a workspace row holds
  int32_t ld_q = 0;
  int32_t ld_w = 0;
  int32_t blocks = 0;   // columns of the block table
  float scale = 0;      // head_dim^-0.5
  float head_scale = 0; // heads^-0.5, applied to w
  DType q_type = DType::bf16;
  DType w_type = DType::f32;
  DType cache_type = DType::bf16;
  int32_t runs = 0; // 1: many rows of a segment follow each other; CUDA scores them together

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("heads", &Config::heads), f("head_dim", &Config::head_dim), f("top_k", &Config::top_k),
        f("max_context", &Config::max_context), f("ld_q", &Config::ld_q), f("ld_w", &Config::ld_w), f("blocks", &Config::blocks),
        f("scale", &Config::scale), f("head_scale", &Config::head_scale), f("q_type", &Config::q_type),
        f("w_type", &Config::w_type), f("cache_type", &Config::cache_type), f("runs", &Config::runs);
  }
  // What the host kernel holds on its stack; heads are rounded up to its tile of 4, a head's values to 16 lanes.
  template <class F> constexpr void host_limits(F &&f) const {
    f("heads", heads, kMaxHeads, 1), f("head_dim", head_dim, kMaxDim, 1);
    f("heads x head_dim, rounded up", int64_t((heads + 3) / 4 * 4) * ((head_dim + 15) / 16 * 16), kMaxQuery, 1);
  }
};

struct Args {
  const void *q;     // [T, heads * head_dim]
  const void *w;     // [T, heads]
  const void *pages; // [blocks of the pool, 256, head_dim], i8: pages of keys (fp8.h)
  Batch batch;
  int32_t *out;    // [T, top_k]
  void *workspace; // host: [tasks, 2, max_context] uint32, all keys of a row, then the candidates of a digit
};

} // namespace k31::kernels::index_select
