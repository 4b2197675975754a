// What the attention kernels share: where a position stands in a paged cache, and several neighbouring values as floats.
#pragma once
#include "codegen/kernels/common/reduce.cuh"

namespace k31::kernels {

// Position in its sequence of a row of the segment.
K31_DEVICE int64_t position_of(const Segment &s, int64_t row) { return (int64_t)s.start + (row - s.row_begin); }

// Row of a paged cache: `pages` is [blocks of the pool, 256, width], `table` the segment's row of the block table.
K31_DEVICE int64_t cache_row(const int32_t *table, int64_t position) {
  return (int64_t)table[position / kBlockTokens] * kBlockTokens + position % kBlockTokens;
}

// N values; N > 1: the address is a multiple of N values or of 16 bytes.
template <DType T, int N> K31_DEVICE void load_values(const void *p, int64_t i, float (&v)[N]) {
  Raw<T, N> raw;
  raw.load(p, i);
#pragma unroll
  for (int j = 0; j < N; ++j)
    v[j] = raw.get(j);
}
template <DType T, int N> K31_DEVICE void store_values(void *p, int64_t i, const float (&v)[N]) {
  Raw<T, N> raw;
  raw.set(v);
  raw.store(p, i);
}

} // namespace k31::kernels
