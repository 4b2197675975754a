// Live rows of one rank, or of several whose rows were gathered one rank behind the other: group g has live[g] rows at g *
// capacity.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels {

struct LiveRows {
  const int32_t *live; // [groups]
  int32_t groups;
  int32_t capacity; // rows of a group; unused when there is one

  constexpr int64_t count() const {
    int64_t sum = 0;
    for (int32_t g = 0; g < groups; ++g)
      sum += live[g];
    return sum;
  }
  // Where the i-th live row is, i < count().
  constexpr int64_t row(int64_t i) const {
    for (int32_t g = 0; g + 1 < groups; ++g) {
      if (i < live[g])
        return (int64_t)g * capacity + i;
      i -= live[g];
    }
    return (int64_t)(groups - 1) * capacity + i;
  }
};

} // namespace k31::kernels
