// Division and square root as fused regions have them, over the range of fp32 and at its ends.
#include "codegen/kernels/common/math.cuh"
#include "test/kernels/cuda/runner.h"
#include <limits>

namespace {

using namespace k31::test;
using k31::kernels::inverse_root, k31::kernels::quotient;

__global__ void divide(const float *a, const float *b, float *quotients, float *roots, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    quotients[i] = quotient(a[i], b[i]), roots[i] = inverse_root(b[i]);
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
