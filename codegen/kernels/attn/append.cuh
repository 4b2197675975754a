// CUDA kernel of attn.append: one 16-byte access a thread where widths and addresses allow it, else one value. Codes: a warp has
// the values of one scale.
#pragma once
#include "codegen/kernels/attn/append.tile.h"
#include "codegen/kernels/attn/cache.cuh"
#include "codegen/kernels/common/fp8.cuh"

namespace k31::kernels::append {

// N values an access.
template <Config c, Tile t, int N> K31_DEVICE void copy(const Args &args) {
  constexpr int32_t per_row = c.cols / N;
  const Batch &batch = args.batch;
  const int64_t units = (int64_t)batch.counts[0] * per_row;
  for (int64_t u = (int64_t)blockIdx.x * t.threads() + threadIdx.x; u < units; u += (int64_t)gridDim.x * t.threads()) {
    const int64_t row = u / per_row, col = u % per_row * N;
    const int32_t s = batch.row_segment[row];
    const int64_t to = cache_row(batch.block_table + (int64_t)s * c.blocks, position_of(batch.segments[s], row)) * c.width;
    float v[N];
    load_values<c.x_type>(args.x, row * c.ld_x + col, v);
    store_values<c.cache_type>(args.pages, to + c.begin + col, v);
  }
}

// All codes of the rows, with their scales.
template <Config c, Tile t> K31_DEVICE void quantise(const Args &args) {
  constexpr int kEach = c.cache_type == DType::i8 ? c.codes : kRowScaleCodes; // codes of a scale
  constexpr int kGroups = (c.codes + kEach - 1) / kEach, kSteps = (kEach + 127) / 128, kWarps = t.threads() / 32;
  const Batch &batch = args.batch;
  const int64_t units = (int64_t)batch.counts[0] * kGroups;
  for (int64_t u = (int64_t)blockIdx.x * kWarps + warp_id(); u < units; u += (int64_t)gridDim.x * kWarps) {
    const int64_t row = u / kGroups;
    const int first = (int)(u % kGroups) * kEach, n = least(kEach, c.codes - first);
    const int32_t s = batch.row_segment[row];
    const int64_t place = cache_row(batch.block_table + (int64_t)s * c.blocks, position_of(batch.segments[s], row));
    uint8_t *to = (uint8_t *)args.pages, *scale_to;
    if constexpr (c.cache_type == DType::i8)
      scale_to = to + key_scale_at(place, c.codes), to += key_at(place, c.codes);
    else
      to += place * coded_row_bytes(c.codes, c.width) + first, scale_to = to - first + c.codes + first / kEach * 4;
    float v[kSteps][4]; // four neighbouring values a lane
    uint32_t largest = 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = step * 128 + lane_id() * 4 + i;
        v[step][i] = at < n ? load<c.x_type>(args.x, row * c.ld_x + first + at) : 0;
        const uint32_t magnitude = __float_as_uint(v[step][i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
      }
    largest = __reduce_max_sync(kAllLanes, largest);
    float scale = __uint_as_float(scale_bits(largest)), inverse = __uint_as_float(inverse_scale_bits(scale_bits(largest)));
    if (c.cache_type == DType::i8 && largest < kNotFinite) {
      const float most = fmaxf(__uint_as_float(largest), kLeastMagnitude);
      scale = most / kLargestInteger, inverse = kLargestInteger / most;
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int at = step * 128 + lane_id() * 4;
      uint32_t codes = 0;
      if constexpr (c.cache_type == DType::i8) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          codes |= (__float2int_rn(v[step][i] * inverse) & 255u) << 8 * i;
      } else {
        codes = pack_e4m3(v[step][0] * inverse, v[step][1] * inverse) | pack_e4m3(v[step][2] * inverse, v[step][3] * inverse)
                                                                            << 16;
      }
      codes = inverse == 0 ? 0 : codes; // what is not finite is told by the scale
      if constexpr (c.codes % 4 == 0) {
        if (at < n)
          *(uint32_t *)(to + at) = codes;
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (at + i < n)
            to[at + i] = (uint8_t)(codes >> 8 * i);
      }
    }
    if (lane_id() == 0)
      *(float *)scale_to = scale;
  }
}
// The columns behind the codes, as bf16.
template <Config c, Tile t> K31_DEVICE void append_rest(const Args &args) {
  const Batch &batch = args.batch;
  const int64_t units = (int64_t)batch.counts[0] * c.cols;
  for (int64_t u = (int64_t)blockIdx.x * t.threads() + threadIdx.x; u < units; u += (int64_t)gridDim.x * t.threads()) {
    const int64_t row = u / c.cols, col = u % c.cols;
    const int32_t s = batch.row_segment[row];
    const int64_t place = cache_row(batch.block_table + (int64_t)s * c.blocks, position_of(batch.segments[s], row));
    store<DType::bf16>((char *)args.pages + place * coded_row_bytes(c.codes, c.width) + row_rest_at(c.codes),
                       c.begin - c.codes + col, load<c.x_type>(args.x, row * c.ld_x + col));
  }
}

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (c.codes > 0) {
    if constexpr (c.begin == 0)
      return quantise<c, t>(args);
    else
      return append_rest<c, t>(args);
  } else if constexpr (c.cols % 8 == 0 && c.ld_x % 8 == 0 && c.begin % 8 == 0 && c.width % 8 == 0) {
    if (aligned16(args.x) && aligned16(args.pages))
      return copy<c, t, 8>(args);
    copy<c, t, 1>(args);
  } else {
    copy<c, t, 1>(args);
  }
}

} // namespace k31::kernels::append
