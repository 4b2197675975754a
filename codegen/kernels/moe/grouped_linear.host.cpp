// moe.grouped_linear on the host: for each expert with rows, register tiles of dot products along K with weights read packed.
//
// MXFP4 codes are decoded in registers and scaled by their block's power of two, which is exact, then used for up to four rows.
// The unit of work is one expert by 16 output columns. Units cost what their rows cost plus the reading of the weights; tasks get
// equal shares of that cost, so one crowded expert is spread over all tasks and empty experts take no part. Where there are AMX
// tiles the unit is a panel of 128 rows of W (common/amx.h), which is decoded to bf16 once for all rows of the expert: exact.
#include "codegen/kernels/moe/grouped_linear.h"
#include "codegen/kernels/common/amx.h"
#include "codegen/kernels/common/dot.h"
#include "codegen/kernels/common/mxfp4.h"

using namespace k31::kernels;
using grouped_linear::Args, grouped_linear::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr int kMaxWidth = 2 * kLanes; // rows of W behind 16 output columns: 16, or 32 with `pair`
constexpr int64_t kWeightCost = 4;    // reading and decoding the weights of a unit, in rows

K31_INLINE int width() { return k31_config.pair ? 2 * kLanes : kLanes; }
K31_INLINE int64_t out_cols() { return k31_config.pair ? k31_config.n / 2 : k31_config.n; }
K31_INLINE const uint8_t *scales(const Args *args) { return (const uint8_t *)args->tail[0]; }
K31_INLINE const int32_t *offsets(const Args *args) { return (const int32_t *)args->tail[k31_config.mxfp4 ? 1 : 0]; }
K31_INLINE void *result(const Args *args) { return args->tail[k31_config.mxfp4 ? 2 : 1]; }

// sums[r * kMaxWidth + c] for R rows of x and four rows of W: `w` their codes, `s` their scales. K is a multiple of 32.
template <int R> K31_INLINE void packed_tile(const void *x, const uint8_t *const *w, const uint8_t *const *s, float *sums) {
  const Config &c = k31_config;
  f32x16 acc[R][4];
  K31_UNROLL for (int r = 0; r < R; ++r) { K31_UNROLL for (int i = 0; i < 4; ++i) acc[r][i] = splat(0); }
  int64_t blocks = c.k / kScaleColumns;
  for (int64_t first = 0; first < blocks; first += kLanes) {
    int n = blocks - first < kLanes ? (int)(blocks - first) : kLanes;
    alignas(64) float factor[4][kLanes]; // the scales of up to 16 blocks, widened together
    K31_UNROLL for (int i = 0; i < 4; ++i) {
      u8x16 bytes = (u8x16)(uint8_t)0;
      if (n == kLanes)
        bytes = load_vector<u8x16>(s[i] + first);
      else
        for (int b = 0; b < n; ++b)
          bytes[b] = s[i][first + b];
      f32x16 f = e8m0(bytes);
      memcpy(factor[i], &f, sizeof f);
    }
    if (k31_bf16_products && c.x_type == DType::bf16) {
      for (int b = 0; b < n; ++b)
        K31_UNROLL for (int i = 0; i < 4; ++i) {
          u32x16 wv = pairs_e2m1(w[i] + (first + b) * kCodeBytes);
          K31_UNROLL for (int r = 0; r < R; ++r) {
            u32x16 xv = load_vector<u32x16>((const uint16_t *)x + r * (int64_t)c.ld_x + (first + b) * kScaleColumns);
            acc[r][i] = fma16(dot_bf16(splat(0), xv, wv), splat(factor[i][b]), acc[r][i]);
          }
        }
      continue;
    }
    for (int b = 0; b < n; ++b) {
      EvenOdd xv[R];
      K31_UNROLL for (int r = 0; r < R; ++r) xv[r] =
          split_even_odd(x, c.x_type, r * (int64_t)c.ld_x + (first + b) * kScaleColumns);
      K31_UNROLL for (int i = 0; i < 4; ++i) {
        EvenOdd wv = decode_e2m1(w[i] + (first + b) * kCodeBytes);
        wv.even *= splat(factor[i][b]), wv.odd *= splat(factor[i][b]);
        K31_UNROLL for (int r = 0; r < R; ++r) acc[r][i] = fma16(xv[r].odd, wv.odd, fma16(xv[r].even, wv.even, acc[r][i]));
      }
    }
  }
  K31_UNROLL for (int r = 0; r < R; ++r) {
    f32x4 total = lane_sums(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
    memcpy(sums + r * kMaxWidth, &total, sizeof total);
  }
}

// ---- few rows of bf16 by packed weights, 128 columns at a time
constexpr int64_t kMaxOrdered = 8192; // columns of a row of x that is kept in the order of the codes

typedef uint8_t u8x4 __attribute__((ext_vector_type(4)));

struct Ordered {
  alignas(64) uint32_t x[kMaxTileRows][kMaxOrdered / 2];
};

K31_INLINE bool words_fit(int64_t rows) {
  const Config &c = k31_config;
  return k31_bf16_products && c.mxfp4 && c.x_type == DType::bf16 && c.k % kWideColumns == 0 && c.k <= kMaxOrdered &&
         rows <= kMaxTileRows;
}

// As packed_tile. The four rows of W behind these are asked for: they come from memory next.
template <int R> K31_INLINE void ordered_tile(const Ordered &x, const uint8_t *const *w, const uint8_t *const *s, float *sums) {
  const Config &c = k31_config;
  f32x16 acc[R][4];
  K31_UNROLL for (int r = 0; r < R; ++r) { K31_UNROLL for (int i = 0; i < 4; ++i) acc[r][i] = splat(0); }
  const int wide = c.k / kWideColumns; // each has four scales
  for (int b = 0; b < wide; ++b) {
    K31_UNROLL for (int i = 0; i < 4; ++i) {
      const uint8_t *codes = w[i] + b * (kWideColumns / 2);
      __builtin_prefetch(codes + 2 * c.k);
      u32x16 u = load_vector<u32x16>(codes);
      u8x4 four = load_vector<u8x4>(s[i] + 4 * b);
      f32x16 factor = e8m0(__builtin_shufflevector(four, four, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3));
      u32x16 wv[4];
      K31_UNROLL for (int v = 0; v < 4; ++v) wv[v] = look_up_e2m1(u >> (4 * v));
      K31_UNROLL for (int r = 0; r < R; ++r) {
        f32x16 part = splat(0);
        K31_UNROLL for (int v = 0; v < 4; ++v) part = dot_bf16(part, load_vector<u32x16>(x.x[r] + (b * 4 + v) * kLanes), wv[v]);
        acc[r][i] = fma16(part, factor, acc[r][i]);
      }
    }
  }
  K31_UNROLL for (int r = 0; r < R; ++r) {
    f32x4 total = lane_sums(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
    memcpy(sums + r * kMaxWidth, &total, sizeof total);
  }
}

K31_INLINE void finish_row(const Args *args, int64_t row, int64_t unit, const float *sums);

template <int R> K31_INLINE void ordered_unit(const Args *args, const Ordered &x, int64_t expert, int64_t row, int64_t unit) {
  const Config &c = k31_config;
  alignas(64) float sums[kMaxTileRows * kMaxWidth];
  for (int j = 0; j < width(); j += 4) {
    const uint8_t *w[4], *s[4];
    for (int i = 0; i < 4; ++i) {
      int64_t n = unit * width() + j + i, at = expert * c.n + (n < c.n ? n : c.n - 1);
      w[i] = (const uint8_t *)args->w + at * (c.k / 2), s[i] = scales(args) + at * (c.k / kScaleColumns);
    }
    ordered_tile<R>(x, w, s, sums + j);
  }
  for (int r = 0; r < R; ++r)
    finish_row(args, row + r, unit, sums + r * kMaxWidth);
}

// Rows [begin, end) of an expert by units [first, last). Not inlined: only here a task needs the stack of `Ordered`.
__attribute__((noinline)) void by_words(const Args *args, int64_t expert, int64_t begin, int64_t end, int64_t first,
                                        int64_t last) {
  const Config &c = k31_config;
  Ordered x;
  for (int64_t row = begin; row < end; ++row)
    order_for_words((const uint16_t *)args->x + row * c.ld_x, c.k, x.x[row - begin]);
  for (int64_t unit = first; unit < last; ++unit)
    switch (end - begin) {
    case 1:
      ordered_unit<1>(args, x, expert, begin, unit);
      break;
    case 2:
      ordered_unit<2>(args, x, expert, begin, unit);
      break;
    case 3:
      ordered_unit<3>(args, x, expert, begin, unit);
      break;
    default:
      ordered_unit<4>(args, x, expert, begin, unit);
      break;
    }
}

// The sums of R rows of one expert; past the last row of W that row is repeated, its sums are not stored.
template <int R> K31_INLINE void sums_of(const Args *args, int64_t expert, int64_t row, int64_t unit, float *sums) {
  const Config &c = k31_config;
  if (R > 1 && c.rows < R)
    return;
  const void *x = element(args->x, c.x_type, row * c.ld_x);
  for (int j = 0; j < width(); j += 4) {
    int64_t at[4]; // rows of W, all experts together
    for (int i = 0; i < 4; ++i) {
      int64_t n = unit * width() + j + i;
      at[i] = expert * c.n + (n < c.n ? n : c.n - 1);
    }
    if (c.mxfp4) {
      const uint8_t *w[4], *s[4];
      for (int i = 0; i < 4; ++i) {
        w[i] = (const uint8_t *)args->w + at[i] * (c.k / 2);
        s[i] = scales(args) + at[i] * (c.k / kScaleColumns);
      }
      packed_tile<R>(x, w, s, sums + j);
    } else {
      const void *w[4];
      for (int i = 0; i < 4; ++i)
        w[i] = element(args->w, c.w_type, at[i] * c.k);
      dot_tile<R>(x, c.x_type, c.ld_x, w, c.w_type, c.k, sums + j, kMaxWidth);
    }
  }
}

K31_INLINE void finish_row(const Args *args, int64_t row, int64_t unit, const float *sums) {
  const Config &c = k31_config;
  int64_t col = unit * kLanes;
  int n = out_cols() - col < kLanes ? (int)(out_cols() - col) : kLanes;
  float out[kLanes];
  if (c.epilogue)
    k31_region_0(sums, out); // sums of the second matrix follow 16 lanes later
  else
    memcpy(out, sums, sizeof out);
  store_part(result(args), c.out_type, row * c.ld_out + col, load_vector<f32x16>(out), n);
}

// Packed tiles have four columns at every level: with AVX2 two rows are what their decoding leaves room for.
K31_INLINE int most_rows() { return k31_config.mxfp4 && k31_vector_bytes < 64 ? 2 : most_tile_rows(); }

K31_INLINE void tile_of(const Args *args, int64_t expert, int64_t row, int rows, int64_t unit) {
  alignas(64) float sums[kMaxTileRows * kMaxWidth];
  switch (rows) {
  case 1:
    sums_of<1>(args, expert, row, unit, sums);
    break;
  case 2:
    sums_of<2>(args, expert, row, unit, sums);
    break;
  case 3:
    sums_of<3>(args, expert, row, unit, sums);
    break;
  default:
    sums_of<4>(args, expert, row, unit, sums);
    break;
  }
  for (int r = 0; r < rows; ++r)
    finish_row(args, row + r, unit, sums + r * kMaxWidth);
}

// ---- panels of W in AMX tiles
constexpr int64_t kManyRows = 9; // as nn.linear

K31_INLINE bool tiles_fit() {
  const Config &c = k31_config;
  return k31_bf16_products >= 2 && c.rows != 1 && c.x_type == DType::bf16 && (c.mxfp4 || c.w_type == DType::bf16) &&
         c.k % kScaleColumns == 0;
}

// 32 columns of one row of W as pairs of bf16.
K31_INLINE u32x16 row_pairs(const Args *args, int64_t row, int64_t column) {
  const Config &c = k31_config;
  if (!c.mxfp4)
    return load_vector<u32x16>((const uint16_t *)args->w + row * c.k + column);
  EvenOdd v = decode_e2m1((const uint8_t *)args->w + row * (c.k / 2) + column / 2);
  f32x16 factor = e8m0((u8x16)scales(args)[(row * c.k + column) / kScaleColumns]);
  return (u32x16)(v.even * factor) >> 16 | ((u32x16)(v.odd * factor) & 0xffff0000u);
}

// Rows [begin, end) of an expert by one panel. Not inlined: only here a task needs the stack that a panel takes.
__attribute__((noinline)) void by_panel(const Args *args, int64_t expert, int64_t begin, int64_t end, int64_t index) {
  const Config &c = k31_config;
  Panel panel;
  const int64_t first = index * kPanel, left = c.n - first;
  const int columns = left < kPanel ? (int)(left + kLanes - 1) / kLanes * kLanes : kPanel;
  const auto pairs = [&](int n, int64_t k) __attribute__((always_inline)) {
    return first + n < c.n ? row_pairs(args, expert * c.n + first + n, k) : (u32x16)0u;
  };
  for (int64_t row = begin; row < end; row += kPanelRows) {
    const int rows = end - row < kPanelRows ? (int)(end - row) : kPanelRows;
    multiply_panel((const uint16_t *)args->x + row * c.ld_x, c.ld_x, rows, c.k, columns, panel, pairs);
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < columns; n += width())
        finish_row(args, row + r, (first + n) / width(), panel.sums + r * kPanel + n);
  }
}

K31_INLINE int64_t clamp(int64_t v, int64_t most) { return v < 0 ? 0 : v < most ? v : most; }

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const int32_t *offset = offsets(args);
  const int64_t width_of_unit = tiles_fit() ? kPanel / (c.pair ? 2 : 1) : kLanes; // output columns
  int64_t units = (out_cols() + width_of_unit - 1) / width_of_unit, total = 0;
  for (int64_t e = 0; e < c.experts; ++e)
    if (offset[e + 1] > offset[e])
      total += units * (offset[e + 1] - offset[e] + kWeightCost);
  Range work = share(total, task, tasks);
  int64_t block = block_rows(c.k, c.x_type), start = 0; // start: cost of all units before this expert
  for (int64_t e = 0; e < c.experts && start < work.end; ++e) {
    int64_t begin = offset[e], end = offset[e + 1];
    if (end <= begin)
      continue;
    // The units whose cost begins inside this task's share.
    int64_t cost = end - begin + kWeightCost;
    int64_t first = clamp((work.begin - start + cost - 1) / cost, units),
            last = clamp((work.end - start + cost - 1) / cost, units);
    start += units * cost;
    if (tiles_fit()) {
      if (end - begin >= kManyRows) {
        for (int64_t unit = first; unit < last; ++unit)
          by_panel(args, e, begin, end, unit);
        continue;
      }
      const int64_t all = (out_cols() + kLanes - 1) / kLanes; // from here on in units of 16 columns
      first = clamp(first * width_of_unit / kLanes, all), last = clamp(last * width_of_unit / kLanes, all);
    }
    if (words_fit(end - begin)) {
      by_words(args, e, begin, end, first, last);
      continue;
    }
    for (int64_t row0 = begin; row0 < end; row0 += block) {
      int64_t row1 = row0 + block < end ? row0 + block : end;
      for (int64_t unit = first; unit < last; ++unit)
        for (int64_t row = row0; row < row1;) {
          int rows = tile_rows(row1 - row, most_rows());
          tile_of(args, e, row, rows, unit);
          row += rows;
        }
    }
  }
}
