// Tensors and launches of host kernel tests.
#pragma once
#include "test/kernels/common/host_tensor.h"
#include <gtest/gtest.h>
#include <limits>

namespace k31::test {

using Tensor = HostTensor;

// compare() with failures of gtest.
template <class F> void expect_close(const Tensor &got, int64_t rows, F want, double tolerance, const char *what = "out") {
  compare(got, rows, want, tolerance, what, [](const std::string &text) { ADD_FAILURE() << text; });
}

// Runs all tasks of a launch in a fixed shuffled order: the order must not matter.
template <class Args, class Entry> void launch(Entry entry, const Args &args, uint32_t tasks) {
  std::vector<uint32_t> order(tasks);
  for (uint32_t t = 0; t < tasks; ++t)
    order[t] = (t * 7 + tasks / 2) % tasks;
  if (tasks % 7 == 0)
    for (uint32_t t = 0; t < tasks; ++t)
      order[t] = tasks - 1 - t;
  for (uint32_t t : order)
    entry(&args, t, tasks);
}

} // namespace k31::test
