// Batches of kernel tests: ragged segments, more rows and segments than live ones, and a block table over shuffled physical
// blocks. Block 0 and all slots that no segment names stay poisoned; unused entries of the table point to block 0.
#pragma once
#include "test/kernels/common/codes.h"
#include "test/kernels/common/tensor.h"
#include <algorithm>
#include <numeric>

namespace k31::test {

struct BatchData {
  struct Run {
    int start, length, slot_in = -1, slot_out = 0;
  };

  BatchData(const std::vector<Run> &runs, int dead_rows = 3, int table_columns = 0) {
    int needed = 0;
    for (const Run &run : runs) {
      int of_run = (run.start + run.length + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
      columns = std::max(columns, of_run);
      needed += of_run;
    }
    columns = std::max(columns + 1, table_columns);
    pool_blocks = needed + 2;
    std::vector<int32_t> free(pool_blocks - 1);
    std::iota(free.begin(), free.end(), 1);
    std::shuffle(free.begin(), free.end(), random_engine());
    table.assign((runs.size() + 1) * columns, 0);
    int row = 0;
    for (size_t s = 0; s < runs.size(); ++s) {
      const Run &run = runs[s];
      segments.push_back({row, run.length, run.start, run.slot_in, run.slot_out, 0});
      for (int i = 0; i < run.length; ++i)
        row_segment.push_back((int32_t)s);
      for (int b = 0; b * kernels::kBlockTokens < run.start + run.length; ++b) {
        table[s * columns + b] = free.back();
        free.pop_back();
      }
      row += run.length;
    }
    segments.push_back({row, 1, 0, 0, 0, 0}); // a dead segment, past the live ones
    row_segment.insert(row_segment.end(), dead_rows, -1);
    counts = {row, (int32_t)runs.size(), row, -1};
  }

  int live() const { return counts[0]; }
  int rows() const { return (int)row_segment.size(); } // capacity
  int live_segments() const { return counts[1]; }
  int position(int row) const { return segments[row_segment[row]].start + row - segments[row_segment[row]].row_begin; }
  // Row of the pool [pool_blocks * 256, width] that holds a position of a segment.
  int64_t cache_row(int segment, int64_t position) const {
    return (int64_t)table[segment * columns + position / kernels::kBlockTokens] * kernels::kBlockTokens +
           position % kernels::kBlockTokens;
  }
  kernels::Batch view() const { return {counts.data(), segments.data(), row_segment.data(), table.data()}; }

  int columns = 0, pool_blocks = 0;
  std::vector<int32_t> counts, row_segment, table;
  std::vector<kernels::Segment> segments;
};

// A cache pool whose rows hold normal values at all positions before the end of each segment, poison elsewhere.
inline Tensor filled_pool(const BatchData &batch, DType type, int width, float scale = 1) {
  Tensor pool(type, (int64_t)batch.pool_blocks * kernels::kBlockTokens, width);
  for (int s = 0; s < batch.live_segments(); ++s)
    for (int p = 0; p < batch.segments[s].start + batch.segments[s].length; ++p)
      for (int c = 0; c < width; ++c)
        pool.set(batch.cache_row(s, p), c, normal(scale));
  return pool;
}

// The same in fp8: `values` fp32, which become what is stored.
inline Tensor coded_latent_pool(Tensor &values, int codes) {
  Tensor bytes(DType::u8, values.rows(), latent_bytes(codes, (int)values.cols()));
  store_latent_rows(values, bytes, codes);
  return bytes;
}
inline Tensor coded_key_pool(Tensor &values) {
  Tensor bytes(DType::u8, values.rows() / kernels::kBlockTokens, kernels::kBlockTokens * (values.cols() + 4));
  store_keys(values, bytes);
  return bytes;
}

} // namespace k31::test
