// The batches of both kinds of kernel tests: ragged segments, more rows and segments than live ones, and a block table over
// shuffled physical blocks. Block 0 and all slots that no segment names stay poisoned; unused entries of the table point to
// block 0.
#pragma once
#include "test/kernels/common/host_tensor.h"
#include <algorithm>
#include <numeric>

namespace k31::test {

struct BatchLayout {
  struct Run {
    int start, length, slot_in = -1, slot_out = 0;
  };

  // table_columns, 0: one more than the longest segment needs.
  explicit BatchLayout(const std::vector<Run> &runs, int dead_rows = 3, int table_columns = 0) {
    int needed = 0, longest = 0;
    for (const Run &run : runs) {
      const int blocks = (run.start + run.length + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
      longest = std::max(longest, blocks);
      needed += blocks;
    }
    columns = table_columns ? table_columns : longest + 1;
    pool_blocks = needed + 2;
    std::vector<int32_t> free(pool_blocks - 1);
    std::iota(free.begin(), free.end(), 1);
    std::shuffle(free.begin(), free.end(), random_engine());
    table.assign((runs.size() + 1) * columns, 0);
    int row = 0;
    for (size_t s = 0; s < runs.size(); ++s) {
      const Run &run = runs[s];
      segments.push_back({row, run.length, run.start, run.slot_in, run.slot_out, 0});
      row_segment.insert(row_segment.end(), run.length, (int32_t)s);
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
  int live_segments() const { return counts[1]; }
  int rows() const { return (int)row_segment.size(); } // capacity
  int position(int64_t row) const {
    const kernels::Segment &s = segments[row_segment[row]];
    return s.start + (int)row - s.row_begin;
  }
  // Row of the pool [pool_rows, width] that holds a position of a segment.
  int64_t cache_row(int64_t segment, int64_t position) const {
    return (int64_t)table[segment * columns + position / kernels::kBlockTokens] * kernels::kBlockTokens +
           position % kernels::kBlockTokens;
  }
  int64_t pool_rows() const { return (int64_t)pool_blocks * kernels::kBlockTokens; }

  // Draws the values of all positions before the end of each segment; the others stay poison.
  template <class F> void fill_pool(HostTensor &pool, F draw) const {
    for (int s = 0; s < live_segments(); ++s)
      for (int p = 0; p < segments[s].start + segments[s].length; ++p)
        for (int64_t c = 0; c < pool.cols(); ++c)
          pool.set(cache_row(s, p), c, draw());
  }

  int columns, pool_blocks;
  std::vector<int32_t> counts, row_segment, table;
  std::vector<kernels::Segment> segments;
};

} // namespace k31::test
