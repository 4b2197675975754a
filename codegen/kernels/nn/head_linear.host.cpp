// nn.head_linear on the host. W[h] as [out, in]: dot products along `in` (common/dot.h). W[h] as [in, out] (`transposed`): rows
// of W are scaled by the values of x and added, 64 columns at a time. The unit of work is one head by 64 output columns; no sum
// is split.
#include "codegen/kernels/nn/head_linear.h"
#include "codegen/kernels/common/dot.h"

using namespace k31::kernels;
using head_linear::Args, head_linear::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr int kColumns = 64;

K31_INLINE int least(int64_t a, int b) { return a < b ? (int)a : b; }

template <int R> K31_INLINE void dot_rows(const void *x, const void *w, void *out, int64_t out_at, int64_t col) {
  const Config &c = k31_config;
  for (int64_t j = col; j < col + kColumns && j < c.out; j += 4) {
    const void *wj[4];
    for (int i = 0; i < 4; ++i)
      wj[i] = element(w, c.w_type, (j + i < c.out ? j + i : c.out - 1) * c.in);
    float sums[R * 4];
    dot_tile<R>(x, c.x_type, c.ld_x, wj, c.w_type, c.in, sums, 4);
    for (int r = 0; r < R; ++r)
      for (int i = 0; i < least(c.out - j, 4); ++i)
        store(out, c.out_type, out_at + r * c.ld_out + j + i, sums[r * 4 + i]);
  }
}

template <int R> K31_INLINE void scaled_rows(const void *x, const void *w, void *out, int64_t out_at, int64_t col) {
  const Config &c = k31_config;
  constexpr int V = kColumns / kLanes;
  int n = least(c.out - col, kColumns);
  f32x16 acc[R][V];
  K31_UNROLL for (int r = 0; r < R; ++r) { K31_UNROLL for (int v = 0; v < V; ++v) acc[r][v] = splat(0); }
  for (int64_t k = 0; k < c.in; ++k) {
    f32x16 wv[V];
    K31_UNROLL for (int v = 0; v < V; ++v) wv[v] =
        n > v * kLanes ? load_part(w, c.w_type, k * c.out + col + v * kLanes, least(n - v * kLanes, kLanes)) : splat(0);
    K31_UNROLL for (int r = 0; r < R; ++r) {
      f32x16 xv = splat(load(x, c.x_type, r * c.ld_x + k));
      K31_UNROLL for (int v = 0; v < V; ++v) acc[r][v] = fma16(xv, wv[v], acc[r][v]);
    }
  }
  K31_UNROLL for (int r = 0; r < R; ++r) {
    K31_UNROLL for (int v = 0; v < V; ++v) if (n > v * kLanes)
        store_part(out, c.out_type, out_at + r * c.ld_out + col + v * kLanes, acc[r][v], least(n - v * kLanes, kLanes));
  }
}

template <int R> K31_INLINE void tile(const Args *args, int64_t row, int64_t head, int64_t col) {
  const Config &c = k31_config;
  if (R > 1 && c.rows < R)
    return;
  const void *x = element(args->x, c.x_type, row * c.ld_x + head * c.head_x);
  const void *w = element(args->w, c.w_type, c.w_begin + head * c.head_w);
  int64_t out_at = row * c.ld_out + head * c.out;
  if (c.transposed)
    scaled_rows<R>(x, w, args->out, out_at, col);
  else
    dot_rows<R>(x, w, args->out, out_at, col);
}

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  int64_t live = *args->live, parts = (c.out + kColumns - 1) / kColumns;
  Range units = share(c.heads * parts, task, tasks);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    int64_t head = unit / parts, col = unit % parts * kColumns;
    for (int64_t row = 0; row < live;) {
      int rows = tile_rows(live - row, most_tile_rows());
      switch (rows) {
      case 1:
        tile<1>(args, row, head, col);
        break;
      case 2:
        tile<2>(args, row, head, col);
        break;
      case 3:
        tile<3>(args, row, head, col);
        break;
      default:
        tile<4>(args, row, head, col);
        break;
      }
      row += rows;
    }
  }
}
