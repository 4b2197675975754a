#include "test/kernels/common/regions.h"
#include <cstdio>
#include <cstdlib>

namespace k31::test {

std::array<Region, 6> &regions() {
  static std::array<Region, 6> all;
  return all;
}

} // namespace k31::test

static void call(int index, const float *in, float *out) {
  auto &region = k31::test::regions()[index];
  if (!region) {
    std::fprintf(stderr, "the kernel called region %d, which the test did not set\n", index);
    std::abort();
  }
  region(in, out);
}

extern "C" {
void k31_region_0(const float *in, float *out) { call(0, in, out); }
void k31_region_1(const float *in, float *out) { call(1, in, out); }
void k31_region_2(const float *in, float *out) { call(2, in, out); }
void k31_region_3(const float *in, float *out) { call(3, in, out); }
void k31_region_4(const float *in, float *out) { call(4, in, out); }
void k31_region_5(const float *in, float *out) { call(5, in, out); }
}
