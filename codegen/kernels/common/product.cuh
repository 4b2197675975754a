// The plain form of a product, for any types, strides and alignments: fp32 multiply-adds from shared memory. Fast forms fall back
// to it; fp32 plans use it throughout. It is made to be right, not fast.
#pragma once
#include "codegen/kernels/common/cuda.cuh"
#include "codegen/kernels/common/math.cuh"

namespace k31::kernels {

constexpr int32_t kPlainRows = 16, kPlainCols = 32, kPlainDepth = 32;
constexpr int32_t kPlainShared = 4 * (kPlainRows * kPlainCols + (kPlainRows + kPlainCols) * (kPlainDepth + 1));

// One tile of kPlainRows rows of x by kPlainCols rows of W. x_at(r, k) and w_at(n, k) give values, zero past the ends.
// finish(r, n, sum, partner): partner is the sum of row n + 16 of W when `pair` (n then has bit 4 clear), else 0.
template <int Threads, bool pair, class X, class W, class F> K31_DEVICE void plain_tile(int32_t depth, X x_at, W w_at, F finish) {
  static_assert(Threads % 32 == 0, "whole warps");
  constexpr int kSums = (kPlainRows * kPlainCols + Threads - 1) / Threads;
  constexpr bool kWhole = kSums * Threads == kPlainRows * kPlainCols; // else the last turn has threads without a sum
  float *xs = (float *)shared_memory(), *ws = xs + kPlainRows * (kPlainDepth + 1), *out = ws + kPlainCols * (kPlainDepth + 1);
  float sum[kSums] = {};
  for (int32_t k0 = 0; k0 < depth; k0 += kPlainDepth) {
    for (int i = threadIdx.x; i < kPlainRows * kPlainDepth; i += Threads)
      xs[i / kPlainDepth * (kPlainDepth + 1) + i % kPlainDepth] =
          k0 + i % kPlainDepth < depth ? x_at(i / kPlainDepth, k0 + i % kPlainDepth) : 0.0f;
    for (int i = threadIdx.x; i < kPlainCols * kPlainDepth; i += Threads)
      ws[i / kPlainDepth * (kPlainDepth + 1) + i % kPlainDepth] =
          k0 + i % kPlainDepth < depth ? w_at(i / kPlainDepth, k0 + i % kPlainDepth) : 0.0f;
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kPlainDepth; ++k) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) {
        int at = s * Threads + threadIdx.x;
        if (!kWhole && at >= kPlainRows * kPlainCols)
          break;
        sum[s] = fmaf(xs[at / kPlainCols * (kPlainDepth + 1) + k], ws[at % kPlainCols * (kPlainDepth + 1) + k], sum[s]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int s = 0; s < kSums; ++s)
    if (kWhole || s * Threads + threadIdx.x < kPlainRows * kPlainCols)
      out[s * Threads + threadIdx.x] = sum[s];
  __syncthreads();
  for (int i = threadIdx.x; i < kPlainRows * kPlainCols; i += Threads) {
    int r = i / kPlainCols, n = i % kPlainCols;
    if (!pair)
      finish(r, n, out[i], 0.0f);
    else if (!(n & 16))
      finish(r, n, out[i], out[i + 16]);
  }
  __syncthreads();
}

} // namespace k31::kernels
