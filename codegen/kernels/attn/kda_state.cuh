// A head's state in the registers of a block, and what a token does with it: for attn.kda and attn.kda_decode.
//
// Thread (g, l) holds keys g, g + G, ... of the four values 4 l .. 4 l + 3. One pass gives u = (a k)^T S and (a q)^T S, from
// which follow delta = beta (v - u) and o = (a q)^T S + (q . k) delta; another makes S <- a S + k delta: the order of the host
// kernel.
#pragma once
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/common/math.cuh"

namespace k31::kernels::kda {

// Of a token, for all threads: the decay a = exp(g), and q and k with it.
template <int D> struct Factors {
  float aq[D], ak[D], a[D], k[D];
};

// What normalises q (with its scale) and k, from their sums of squares.
template <int D> struct Scales {
  float q, k;
  K31_DEVICE Scales(float qq, float kk) : q(inverse_root(qq + 1e-6f) * (1 / sqrtf((float)D))), k(inverse_root(kk + 1e-6f)) {}
};

// V values of D keys; G key rows at once.
template <int D, int V, int G> struct State {
  static constexpr int kLanes = V / 4;          // threads across a key row
  static constexpr int kKeys = (D + G - 1) / G; // keys of a thread
  static constexpr int kStride = G * D;         // elements between them
  using Parts = float[G][V];                    // of the sums over the keys, one of each group

  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const bool active = group < G;
  float4 s[kKeys];

  // Calls f(key, number of the key in s) for each key of this thread.
  template <class F> K31_DEVICE void for_keys(F f) const {
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      const int d = group + i * G;
      if (D % G == 0 || d < D)
        f(d, i);
    }
  }

  // u and (a q)^T S of this group's keys.
  K31_DEVICE void see(const Factors<D> &token, Parts &seen, Parts &read) const {
    if (!active)
      return;
    float4 u{0, 0, 0, 0}, o{0, 0, 0, 0};
    for_keys([&](int d, int i) {
      const float4 &v = s[i];
      const float k = token.ak[d], q = token.aq[d];
      u.x += v.x * k, u.y += v.y * k, u.z += v.z * k, u.w += v.w * k;
      o.x += v.x * q, o.y += v.y * q, o.z += v.z * q, o.w += v.w * q;
    });
    *(float4 *)&seen[group][4 * lane] = u;
    *(float4 *)&read[group][4 * lane] = o;
  }
  // The sum over the groups of one value.
  static K31_DEVICE void add_up(const Parts &seen, const Parts &read, int value, float &u, float &o) {
    u = 0, o = 0;
#pragma unroll
    for (int g = 0; g < G; ++g)
      u += seen[g][value], o += read[g][value];
  }
  K31_DEVICE void update(const Factors<D> &token, const float *deltas) {
    if (!active)
      return;
    const float4 delta = *(const float4 *)&deltas[4 * lane];
    for_keys([&](int d, int i) {
      float4 &v = s[i];
      const float a = token.a[d], k = token.k[d];
      v.x = v.x * a + delta.x * k, v.y = v.y * a + delta.y * k;
      v.z = v.z * a + delta.z * k, v.w = v.w * a + delta.w * k;
    });
  }
  // to: [D, D], from the first of the V values on.
  K31_DEVICE void store(float *to) const {
    if (active)
      for_keys([&](int, int i) { *(float4 *)(to + group * D + 4 * lane + i * kStride) = s[i]; });
  }
};

} // namespace k31::kernels::kda
