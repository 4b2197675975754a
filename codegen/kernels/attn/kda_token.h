// What the host kernels of the recurrence do with one token: the order of its sums is in kda.host.cpp.
// Of a kernel that gives its Config as the constant Of::config().
#pragma once
#include "codegen/kernels/attn/kda.h"
#include "codegen/kernels/common/host.h"

namespace k31::kernels::kda {

// One segment of one head.
struct Work {
  const Args *args;
  int64_t head;
  const float *from; // S before the next token
  float *to;         // S after it
};

template <class Of> struct Tokens {
  // Before the first token; where a segment starts from nothing, S is 0.
  K31_INLINE Work begin(const Args *args, const Segment &segment, int64_t head) {
    const Config &c = Of::config();
    const int64_t size = (int64_t)c.head_dim * c.head_dim;
    const auto of_slot = [&](int64_t slot) { return args->state + (slot * c.heads + head) * size; };
    float *to = of_slot(segment.slot_out);
    if (segment.slot_in < 0)
      memset(to, 0, size * sizeof(float));
    return {args, head, segment.slot_in < 0 ? to : of_slot(segment.slot_in), to};
  }
  // Loads q, k (normalised) and a = exp(g) of a row; returns q . k.
  K31_INLINE float load_token(const Work &w, int64_t row, float *q, float *k, float *a) {
    const Config &c = Of::config();
    const int dim = c.head_dim;
    int64_t at = row * c.ld_qkv + w.head * dim, at_g = row * c.ld_g + w.head * dim;
    f32x16 qq = splat(0), kk = splat(0), qk = splat(0);
    for (int d = 0; d < dim; d += kLanes) {
      f32x16 x = load16(w.args->q, c.qkv_type, at + d), y = load16(w.args->k, c.qkv_type, at + d);
      qq += x * x, kk += y * y, qk += x * y;
    }
    float q_scale = 1.0f / (__builtin_elementwise_sqrt(sum(qq) + 1e-6f) * __builtin_elementwise_sqrt((float)dim));
    float k_scale = 1.0f / __builtin_elementwise_sqrt(sum(kk) + 1e-6f);
    for (int d = 0; d < dim; d += kLanes) {
      store16(q, DType::f32, d, load16(w.args->q, c.qkv_type, at + d) * q_scale);
      store16(k, DType::f32, d, load16(w.args->k, c.qkv_type, at + d) * k_scale);
      store16(a, DType::f32, d, exp16(load16(w.args->g, DType::f32, at_g + d)));
    }
    return sum(qk) * q_scale * k_scale;
  }
  K31_INLINE float load_beta(const Work &w, int64_t row) { return w.args->beta[row * Of::config().ld_beta + w.head]; }
  K31_INLINE f32x16 load_v(const Work &w, int64_t row, int64_t value) {
    return load16(w.args->v, Of::config().qkv_type, row * Of::config().ld_qkv + w.head * Of::config().head_dim + value);
  }
  K31_INLINE void store_o(const Work &w, int64_t row, int64_t value, f32x16 o) {
    store16(w.args->out, Of::config().out_type, row * Of::config().ld_out + w.head * Of::config().head_dim + value, o);
  }

  // V vectors of values from `value` on, for one token.
  template <int V>
  K31_INLINE void token_block(const Work &w, int64_t row, int value, const float *k, const float *a, const float *ak,
                              const float *aq, float qk, float beta) {
    const int dim = Of::config().head_dim;
    f32x16 u[V], o[V];
    for (int i = 0; i < V; ++i)
      u[i] = o[i] = splat(0);
    for (int d = 0; d < dim; ++d)
      for (int i = 0; i < V; ++i) {
        f32x16 s = load16(w.from, DType::f32, d * dim + value + i * kLanes);
        u[i] += s * ak[d];
        o[i] += s * aq[d];
      }
    for (int i = 0; i < V; ++i) {
      u[i] = (load_v(w, row, value + i * kLanes) - u[i]) * beta; // delta
      store_o(w, row, value + i * kLanes, o[i] + u[i] * qk);
    }
    for (int d = 0; d < dim; ++d)
      for (int i = 0; i < V; ++i) {
        f32x16 s = load16(w.from, DType::f32, d * dim + value + i * kLanes);
        store16(w.to, DType::f32, d * dim + value + i * kLanes, s * a[d] + u[i] * k[d]);
      }
  }

  K31_INLINE void token(const Work &w, int64_t row) {
    const int dim = Of::config().head_dim;
    alignas(64) float q[kMaxDim], k[kMaxDim], a[kMaxDim], ak[kMaxDim];
    float qk = load_token(w, row, q, k, a), beta = load_beta(w, row);
    for (int d = 0; d < dim; d += kLanes) {
      f32x16 decay = load16(a, DType::f32, d);
      store16(q, DType::f32, d, load16(q, DType::f32, d) * decay);
      store16(ak, DType::f32, d, load16(k, DType::f32, d) * decay);
    }
    int value = 0;
    for (; value + 4 * kLanes <= dim; value += 4 * kLanes)
      token_block<4>(w, row, value, k, a, ak, q, qk, beta);
    for (; value < dim; value += kLanes)
      token_block<1>(w, row, value, k, a, ak, q, qk, beta);
  }
};

} // namespace k31::kernels::kda
