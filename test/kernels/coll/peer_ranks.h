// Ranks as threads, each with an area of its own that it and the others see.
#pragma once
#include "codegen/kernels/coll/peer_area.h"
#include "test/kernels/common/tensor.h"
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace k31::test {

struct PeerRanks {
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };

  PeerRanks(int ranks, int region) : form{1, ranks, region} {
    using kernels::PeerArea, kernels::PeerTable;
    for (int r = 0; r < ranks; ++r) {
      areas.emplace_back(std::aligned_alloc(128, PeerArea::align(form.bytes())));
      std::memset(areas.back().get(), 0, form.bytes());
    }
    for (int r = 0; r < ranks; ++r) {
      auto &table = *new (areas[r].get()) PeerTable();
      for (int s = 0; s < ranks; ++s)
        table.area[s] = areas[s].get();
      table.rank = r;
      table.wait = [](PeerTable *, uint32_t) { return std::this_thread::yield(), true; };
    }
  }
  // f(rank, its area) on all ranks at once.
  template <class F> void run(F &&f) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < form.ranks; ++r)
      threads.emplace_back([this, r, &f] { f(r, areas[r].get()); });
  }

  kernels::PeerArea form;
  std::vector<std::unique_ptr<void, Free>> areas;
};

inline std::vector<Tensor> tensors(int ranks, kernels::DType type, int64_t columns, int64_t rows = 1) {
  std::vector<Tensor> list;
  for (int r = 0; r < ranks; ++r)
    list.emplace_back(type, rows, columns);
  return list;
}

// Of the values at one place, in the order of the ranks, rounded once by who stores it.
inline float sum_at(std::vector<Tensor> &x, int64_t i, int64_t row = 0) {
  float sum = (float)x[0].at(row, i);
  for (size_t r = 1; r < x.size(); ++r)
    sum += (float)x[r].at(row, i);
  return sum;
}

} // namespace k31::test
