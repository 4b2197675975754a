// Division and square root as fused regions have them, over the range of fp32 and at its ends; the router's sigmoids bit for bit.
#include "codegen/kernels/common/math.cuh"
#include "test/kernels/cuda/runner.h"
#include <limits>

namespace {

using namespace k31::test;
using namespace k31::kernels;

__global__ void divide(const float *a, const float *b, float *quotients, float *roots, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    quotients[i] = quotient(a[i], b[i]), roots[i] = inverse_root(b[i]);
}

// How many reciprocals of 2^exponent (1 .. 2) differ from the exact division's.
__global__ void reciprocals(int exponent, int *wrong) {
  int mine = 0;
  for (uint32_t m = blockIdx.x * blockDim.x + threadIdx.x; m < 1u << 23; m += gridDim.x * blockDim.x) {
    const float d = __uint_as_float((uint32_t)(127 + exponent) << 23 | m);
    mine += __float_as_uint(near_reciprocal(d)) != __float_as_uint(__fdiv_rn(1.0f, d));
  }
  atomicAdd(wrong, mine);
}
// How many sigmoids of four at once differ from those of one: all floats in steps of `step`.
__global__ void sigmoids(uint32_t step, int *wrong) {
  int mine = 0;
  const uint64_t threads = gridDim.x * blockDim.x;
  for (uint64_t at = blockIdx.x * blockDim.x + threadIdx.x; at * step < 1ull << 32; at += 4 * threads) {
    float x[4], y[4];
    for (int i = 0; i < 4; ++i)
      x[i] = __uint_as_float((uint32_t)((at + i * threads) * step));
    host_sigmoids(x, y);
    for (int i = 0; i < 4; ++i)
      mine += __float_as_uint(y[i]) != __float_as_uint(host_sigmoid(x[i]));
  }
  atomicAdd(wrong, mine);
}

// Units in the last place of `expected` that `got` is off by.
double ulps(float got, double expected) {
  if (std::isinf(got) || expected == 0)
    return got == float(expected) ? 0 : 1e9;
  return std::abs(got - expected) / std::ldexp(1.0, std::ilogb(expected) - 23);
}

} // namespace

K31_CUDA_TEST("math.regions") {
  constexpr int kCount = 1 << 16;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Tensor a(DType::f32, 1, kCount), b(DType::f32, 1, kCount), quotients(DType::f32, 1, kCount), roots(DType::f32, 1, kCount);
  a.fill([] { return std::ldexp(uniform(-2, 2), int(uniform(-40, 40))); });
  b.fill([] { return std::ldexp(uniform(1, 2), int(uniform(-80, 80))); });
  const float ends[][2] = {{1, 0}, {-1, 0}, {1, kInf}, {-90, kInf}, {kInf, 2}, {0, 1}, {0, kInf}};
  for (int i = 0; i < int(std::size(ends)); ++i)
    a.set(0, i, ends[i][0]), b.set(0, i, ends[i][1]);
  divide<<<1, 1024, 0, stream()>>>(a.device<float>(), b.device<float>(), quotients.device<float>(), roots.device<float>(),
                                   kCount);
  synchronize();
  quotients.fetch(), roots.fetch();
  double worst = 0, worst_root = 0;
  for (int i = 0; i < kCount; ++i) {
    worst = std::max(worst, ulps(float(quotients.at(0, i)), a.at(0, i) / b.at(0, i)));
    worst_root = std::max(worst_root, ulps(float(roots.at(0, i)), 1 / std::sqrt(b.at(0, i))));
  }
  if (!(worst <= 1) || !(worst_root <= 1))
    fail("quotients are off by " + std::to_string(worst) + " and roots by " + std::to_string(worst_root) +
         " units, 1 is allowed");
}

K31_CUDA_TEST("math.sigmoids") {
  Tensor wrong(DType::i32, 1, 1);
  auto none = [&](const std::string &what) {
    synchronize();
    wrong.fetch();
    if (wrong.at(0, 0) != 0)
      fail(std::to_string((int)wrong.at(0, 0)) + " " + what + " differ from the exact division's");
  };
  for (int exponent : {0, 1, 64, 125}) {
    wrong.set(0, 0, 0);
    reciprocals<<<264, 256, 0, stream()>>>(exponent, wrong.device<int>());
    none("reciprocals of 2^" + std::to_string(exponent) + " (1 .. 2)");
  }
  wrong.set(0, 0, 0);
  sigmoids<<<264, 256, 0, stream()>>>(17, wrong.device<int>());
  none("sigmoids");
}
