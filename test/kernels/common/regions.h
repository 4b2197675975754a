// Fused regions as kernel tests define them: k31_region_p calls regions()[p], which a test sets before it runs the kernel.
#pragma once
#include "codegen/kernels/common/region.h"
#include <array>
#include <functional>

namespace k31::test {

using Region = std::function<void(const float *in, float *out)>;
std::array<Region, 6> &regions();

// A region written for one lane: f(in, out) with one float a value, applied to all 16 lanes.
template <class F> Region lanewise(int inputs, int outputs, F f) {
  return [=](const float *in, float *out) {
    for (int lane = 0; lane < kLanes; ++lane) {
      std::array<float, 64> values{}, results{};
      for (int i = 0; i < inputs; ++i)
        values[i] = in[i * kLanes + lane];
      f(values.data(), results.data());
      for (int o = 0; o < outputs; ++o)
        out[o * kLanes + lane] = results[o];
    }
  };
}

} // namespace k31::test
