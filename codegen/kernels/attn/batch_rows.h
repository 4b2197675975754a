// The rows of this rank as a batch of their own: rows [c share, (c + 1) share) at coordinate c, counted from 0. A segment keeps
// its place, so that the block table serves on: what is left of it starts at a later row and position, or has length 0.
#pragma once
#include "codegen/kernels/common/types.h"

namespace k31::kernels::batch_rows {

struct Config {
  int32_t share = 0; // rows of a rank, capacity

  template <class F> static void fields(F &&f) { f("share", &Config::share); }

  // Live rows of the rank whose first row is `first`.
  constexpr int32_t live(int32_t all, int64_t first) const {
    const int64_t left = all - first;
    return left < 0 ? 0 : left < share ? (int32_t)left : share;
  }
  constexpr Segment part(const Segment &whole, int64_t first) const {
    const int64_t begin = whole.row_begin, end = begin + whole.length, last = first + share;
    const int64_t from = begin < first ? first : begin, to = end < last ? end : last;
    if (from >= to)
      return {0, 0, whole.start, whole.slot_in, whole.slot_out, 0};
    return {(int32_t)(from - first), (int32_t)(to - from), (int32_t)(whole.start + (from - begin)),
            whole.slot_in,           whole.slot_out,       0};
  }
};

struct Args {
  Batch batch;               // of all ranks
  const int32_t *coordinate; // [1] of this rank
  int32_t *counts;           // [4]: live rows and segments, no logit row
  Segment *segments;         // [S]
  int32_t *row_segment;      // [share]; -1 past the live rows
};

} // namespace k31::kernels::batch_rows
