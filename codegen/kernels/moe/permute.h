// Rows grouped by expert: the layout invariant of the moe dialect. Experts in [first, first + experts) are held here; with
// `ranked` the first one is the rank's coordinate times `experts`. offsets[e] .. offsets[e + 1] are the rows of local expert e;
// inside an expert rows keep the order of the tokens. slot[t, i] is the row of choice i of token t, -1 when its expert lives
// elsewhere. Runs as one task: it is a prefix sum.
#pragma once
#include "codegen/kernels/moe/live_rows.h"

namespace k31::kernels::permute {

struct Config {
  int32_t rows = 0; // T, capacity
  int32_t cols = 0; // values of a row
  int32_t top_k = 0;
  int32_t first = 0;
  int32_t experts = 0; // local experts
  int32_t ld_x = 0;
  DType type = DType::bf16;
  int32_t ranked = 0;   // 1: a coordinate operand is present
  int32_t groups = 1;   // ranks whose rows follow each other
  int32_t capacity = 0; // rows of each, when there are several

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("cols", &Config::cols), f("top_k", &Config::top_k), f("first", &Config::first),
        f("experts", &Config::experts), f("ld_x", &Config::ld_x), f("type", &Config::type), f("ranked", &Config::ranked),
        f("groups", &Config::groups), f("capacity", &Config::capacity);
  }
};

struct Args {
  const void *x;       // [T, cols]
  const int32_t *ids;  // [T, top_k]
  const int32_t *live; // [groups] live rows
  // coordinate [1] int32 when `ranked`; out [T * top_k, cols]; offsets [experts + 1] int32; slot [T, top_k] int32
  void *tail[4];

  constexpr LiveRows rows(const Config &c) const { return {live, c.groups, c.capacity}; }
  constexpr int32_t first(const Config &c) const { return c.ranked ? *(const int32_t *)tail[0] * c.experts : c.first; }
  constexpr void *out(const Config &c) const { return tail[c.ranked]; }
  constexpr int32_t *offsets(const Config &c) const { return (int32_t *)tail[c.ranked + 1]; }
  constexpr int32_t *slot(const Config &c) const { return (int32_t *)tail[c.ranked + 2]; }
};

} // namespace k31::kernels::permute
