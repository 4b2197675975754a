// Batches of CUDA kernel tests.
#pragma once
#include "test/kernels/common/batch_layout.h"
#include "test/kernels/cuda/runner.h"

namespace k31::test {

// Integers or segments.
template <class T> struct Words : Tensor {
  explicit Words(const std::vector<T> &v) : Tensor(DType::i32, 1, (int64_t)(v.size() * sizeof(T) / 4)) {
    std::memcpy(data(), v.data(), v.size() * sizeof(T));
  }
};

class Batches : public BatchLayout {
public:
  explicit Batches(const std::vector<Run> &runs, int dead_rows = 3, int table_columns = 0)
      : BatchLayout(runs, dead_rows, table_columns), counts_(counts), row_segment_(row_segment), table_(table),
        segments_(segments) {}

  kernels::Batch view() {
    return {counts_.device<int32_t>(), segments_.device<kernels::Segment>(), row_segment_.device<int32_t>(),
            table_.device<int32_t>()};
  }

private:
  Words<int32_t> counts_, row_segment_, table_;
  Words<kernels::Segment> segments_;
};

} // namespace k31::test
