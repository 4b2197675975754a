// Two outputs of an operation, value by value.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstddef>
#include <span>
#include <string>

namespace k31::run {

struct Values {
  std::span<const std::byte> bytes;
  plan::DType type = plan::DType::f32;
  uint64_t columns = 1; // of a row

  uint64_t size() const;
  double at(uint64_t i) const;
  std::string shape() const;          // "bf16 [64, 7168]": rows are the capacity
  std::string text(uint64_t i) const; // the value, or "nothing" when it was not written
  bool written(uint64_t i) const;     // does not hold the pattern of `unwritten`
};

// What memory is filled with before a launch, to see which values it writes: NaN in bf16 and f32, -1 in i32.
constexpr std::byte kUnwritten{0xff};

struct Difference {
  // |a - b| over the largest finite magnitude of both outputs; infinite when one side alone is not finite or not written.
  // Integers: 1 when any differs.
  double relative = 0;
  uint64_t at = 0;                      // element with the largest difference
  double scale = 0;                     // that magnitude
  uint64_t compared = 0, differing = 0; // values that were written, values that are not equal
};

// Rows that only one side has capacity for are not compared. Columns must be equal.
Difference compare(const Values &a, const Values &b);

} // namespace k31::run
