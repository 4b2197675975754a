// Fused regions as the host kernels see them.
//
// A region is compiled by the compiler into functions of this shape and inlined into the kernel. All values travel as 16 fp32
// lanes, value i at in + 16 i; the arrays are promoted to registers once the calls are inlined. `in` holds the elements and
// then the sums of earlier phases, splat over the lanes; `out` gets reduction contributions (phases) or results.
#pragma once

constexpr int kLanes = 16;

extern "C" {
void k31_region_0(const float *in, float *out);
void k31_region_1(const float *in, float *out);
void k31_region_2(const float *in, float *out);
void k31_region_3(const float *in, float *out);
void k31_region_4(const float *in, float *out);
void k31_region_5(const float *in, float *out);
}
