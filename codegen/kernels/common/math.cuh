// Arithmetic of two kinds. Exponentials that agree with the host kernels bit for bit (common/host.h): routing and sampling choose
// the same ids on both. And division and square root of fused regions, within a unit in the last place and without the branches
// of the exact ones: every thread of a row does them, and between two branches nothing overlaps.
#pragma once
#include "codegen/kernels/common/cuda.cuh"

namespace k31::kernels {

// e^x, about 1 ulp: 0 below -87.3, held at e^88.3 above, NaN stays NaN. No branches: several of them overlap.
K31_DEVICE float host_exp(float v) {
  const float x = fminf(fmaxf(v, -87.3f), 88.3f); // NaN becomes -87.3
  float n = floorf(__fmaf_rn(x, 1.44269504088896341f, 0.5f));
  float r = __fmaf_rn(n, -0.693359375f, x);
  r = __fmaf_rn(n, 2.12194440e-4f, r);
  float y = 1.9875691500e-4f;
  y = __fmaf_rn(y, r, 1.3981999507e-3f);
  y = __fmaf_rn(y, r, 8.3334519073e-3f);
  y = __fmaf_rn(y, r, 4.1665795894e-2f);
  y = __fmaf_rn(y, r, 1.6666665459e-1f);
  y = __fmaf_rn(y, r, 5.0000001201e-1f);
  y = __fadd_rn(__fmaf_rn(y, __fmul_rn(r, r), r), 1.0f);
  y = __uint_as_float(__float_as_uint(y) + ((uint32_t)(int32_t)n << 23));
  return v < -87.3f ? 0.0f : v != v ? v : y;
}

K31_DEVICE float host_sigmoid(float x) { return __fdiv_rn(1.0f, __fadd_rn(1.0f, host_exp(-x))); }

// 1 / d rounded to nearest for 1 <= d <= 2^126, NaN for NaN: one step from the hardware's reciprocal, as the exact division does
// where nothing is subnormal, but without its branch.
K31_DEVICE float near_reciprocal(float d) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(d));
  return __fmaf_rn(inverse, __fmaf_rn(-d, inverse, 1.0f), inverse);
}

// host_sigmoid of N values at once: their chains overlap, as only a value below -87.3 in a warp needs the exact division.
template <int N> K31_DEVICE void host_sigmoids(const float (&x)[N], float (&y)[N]) {
  float d[N];
  bool exact = false;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    d[i] = __fadd_rn(1.0f, host_exp(-x[i]));
    y[i] = near_reciprocal(d[i]);
    exact |= d[i] > 0x1p126f;
  }
  if (exact) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      y[i] = __fdiv_rn(1.0f, d[i]);
  }
}

// 2^x to some 2 ulp; results below 2^-126 are 0.
K31_DEVICE float exp2_flushed(float x) {
  float v;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}

// a / b. What b's reciprocal cannot hold counts as 0: |b| above 2^126; below 2^-126 it is infinite.
K31_DEVICE float quotient(float a, float b) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
  const float near = a * inverse, better = __fmaf_rn(__fmaf_rn(-near, b, a), inverse, near);
  return better == better ? better : near; // infinities and zeros
}

// 1 / sqrt(x).
K31_DEVICE float inverse_root(float x) {
  const float near = rsqrtf(x), better = __fmaf_rn(0.5f * near, __fmaf_rn(-(x * near), near, 1.0f), near);
  return better == better ? better : near;
}

} // namespace k31::kernels
