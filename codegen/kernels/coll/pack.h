// Rows and their choices into a piece for each rank that holds one of the chosen experts (piece.h). Rank d of `size` holds
// experts [first + d share, first + (d + 1) share); with `ranked` these ranks are the hosts' own, whose first expert follows from
// the rank's coordinate on the axis of experts. A row goes into a piece once and rows keep their order. slot[t, d] is d room +
// the place of row t in piece d, -1 when no choice of it is held there; units[d] are the 16 bytes of piece d that hold rows.
#pragma once
#include "codegen/kernels/coll/piece.h"
#include "codegen/kernels/moe/live_rows.h"

namespace k31::kernels::pack {

struct Config {
  int32_t rows = 0;  // T, capacity of x
  int32_t room = 0;  // the same, of a piece: decides its size on the host too
  int32_t cols = 0;  // values of a row
  int32_t top_k = 0; // choices of a row
  int32_t ld_x = 0;
  int32_t size = 1;  // ranks
  int32_t share = 1; // experts of a rank
  DType type = DType::bf16;
  int32_t ranked = 0;   // 1: a coordinate operand is present
  int32_t groups = 1;   // ranks whose rows follow each other in x
  int32_t capacity = 0; // rows of each, when there are several

  template <class F> static void fields(F &&f) {
    f("rows", &Config::rows), f("room", &Config::room), f("cols", &Config::cols), f("top_k", &Config::top_k),
        f("ld_x", &Config::ld_x), f("size", &Config::size), f("share", &Config::share), f("type", &Config::type),
        f("ranked", &Config::ranked), f("groups", &Config::groups), f("capacity", &Config::capacity);
  }
  constexpr PieceForm form() const { return {room, cols, top_k, type == DType::bf16 ? 2 : 4}; }
};

struct Args {
  const void *x;        // [T, cols]
  const int32_t *ids;   // [T, top_k]
  const float *weights; // [T, top_k]
  const int32_t *live;  // [groups] live rows
  // coordinate [1] int32 when `ranked`; pieces u8 [size, bytes]; units [size] int32; slot [T, size] int32
  void *tail[4];

  constexpr LiveRows rows(const Config &c) const { return {live, c.groups, c.capacity}; }
  // Expert of rank 0.
  constexpr int32_t first(const Config &c) const { return c.ranked ? *(const int32_t *)tail[0] / c.size * c.size * c.share : 0; }
  constexpr void *pieces(const Config &c) const { return tail[c.ranked]; }
  constexpr int32_t *units(const Config &c) const { return (int32_t *)tail[c.ranked + 1]; }
  constexpr int32_t *slot(const Config &c) const { return (int32_t *)tail[c.ranked + 2]; }
  // Does rank `to`, whose first expert is `begin`, hold a choice of the row?
  constexpr bool goes(const Config &c, int64_t row, uint32_t begin) const {
    bool held = false;
    for (int32_t i = 0; i < c.top_k; ++i)
      held |= (uint32_t)ids[row * c.top_k + i] - begin < (uint32_t)c.share;
    return held;
  }
};

} // namespace k31::kernels::pack
