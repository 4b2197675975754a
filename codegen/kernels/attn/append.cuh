// CUDA kernel of attn.append: one 16-byte access a thread where widths and addresses allow it, else one value.
#pragma once
#include "codegen/kernels/attn/append.tile.h"
#include "codegen/kernels/attn/cache.cuh"

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

template <Config c, Tile t, class Region> __device__ void run(const Args &args) {
  if constexpr (c.cols % 8 == 0 && c.ld_x % 8 == 0 && c.begin % 8 == 0 && c.width % 8 == 0)
    if (aligned16(args.x) && aligned16(args.pages))
      return copy<c, t, 8>(args);
  copy<c, t, 1>(args);
}

} // namespace k31::kernels::append
