// Batches of attention tests: ragged segments, more rows than live ones, and a block table over shuffled physical blocks. Block 0
// and unused positions of a pool stay poison.
#pragma once
#include "test/kernels/cuda/runner.h"
#include <algorithm>
#include <numeric>

namespace k31::test {

// Integers and segments in host and device memory.
template <class T> class Words {
public:
  explicit Words(const std::vector<T> &v) : tensor_(DType::i32, 1, (int64_t)(v.size() * sizeof(T) / 4)), size_(v.size()) {
    std::memcpy(tensor_.host(), v.data(), v.size() * sizeof(T));
  }
  const T &operator[](size_t i) const { return ((const T *)const_cast<Tensor &>(tensor_).host())[i]; }
  size_t size() const { return size_; }
  const T *device() { return tensor_.template device<T>(); }

private:
  Tensor tensor_;
  size_t size_;
};

struct Batches {
  struct Run {
    int start, length, slot_in = -1, slot_out = 0;
  };
  explicit Batches(const std::vector<Run> &runs, int dead_rows = 3) : Batches(make(runs, dead_rows)) {}

  int live() const { return counts[0]; }
  int live_segments() const { return counts[1]; }
  int rows() const { return (int)row_segment.size(); } // capacity
  int position(int64_t row) const {
    const kernels::Segment &s = segments[row_segment[row]];
    return s.start + (int)row - s.row_begin;
  }
  int64_t cache_row(int64_t segment, int64_t position) const {
    return (int64_t)table[segment * columns + position / kernels::kBlockTokens] * kernels::kBlockTokens +
           position % kernels::kBlockTokens;
  }
  kernels::Batch view() { return {counts.device(), segments.device(), row_segment.device(), table.device()}; }
  int64_t pool_rows() const { return (int64_t)pool_blocks * kernels::kBlockTokens; }

  // Draws the values of all positions before the end of each segment.
  template <class F> void fill_pool(Tensor &pool, F draw) const {
    for (int s = 0; s < live_segments(); ++s)
      for (int p = 0; p < segments[s].start + segments[s].length; ++p)
        for (int64_t c = 0; c < pool.cols(); ++c)
          pool.set(cache_row(s, p), c, draw());
  }

  int columns, pool_blocks;
  Words<int32_t> counts, row_segment, table;
  Words<kernels::Segment> segments;

private:
  struct Parts {
    int columns = 0, pool_blocks = 0;
    std::vector<int32_t> counts, row_segment, table;
    std::vector<kernels::Segment> segments;
  };
  explicit Batches(const Parts &p)
      : columns(p.columns), pool_blocks(p.pool_blocks), counts(p.counts), row_segment(p.row_segment), table(p.table),
        segments(p.segments) {}
  static Parts make(const std::vector<Run> &runs, int dead_rows) {
    Parts p;
    int needed = 0, row = 0;
    for (const Run &run : runs) {
      int of_run = (run.start + run.length + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
      p.columns = std::max(p.columns, of_run + 1);
      needed += of_run;
    }
    p.pool_blocks = needed + 2;
    std::vector<int32_t> free(p.pool_blocks - 1);
    std::iota(free.begin(), free.end(), 1);
    std::shuffle(free.begin(), free.end(), random_engine());
    p.table.assign((runs.size() + 1) * p.columns, 0);
    for (size_t s = 0; s < runs.size(); ++s) {
      const Run &run = runs[s];
      p.segments.push_back({row, run.length, run.start, run.slot_in, run.slot_out, 0});
      p.row_segment.insert(p.row_segment.end(), run.length, (int32_t)s);
      for (int b = 0; b * kernels::kBlockTokens < run.start + run.length; ++b) {
        p.table[s * p.columns + b] = free.back();
        free.pop_back();
      }
      row += run.length;
    }
    p.segments.push_back({row, 1, 0, 0, 0, 0}); // a dead segment, past the live ones
    p.row_segment.insert(p.row_segment.end(), dead_rows, -1);
    p.counts = {row, (int32_t)runs.size(), row, -1};
    return p;
  }
};

} // namespace k31::test
