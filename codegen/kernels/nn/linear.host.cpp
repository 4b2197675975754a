// nn.linear on the host: register tiles of dot products along K (common/dot.h), then the fused epilogue.
//
// The unit of work is one block of rows of x by 16 output columns. Rows of a block stay in the second-level cache while the 16
// (or 2 x 16) rows of W pass by once; with few live rows there is one block and W is read from memory exactly once.
// Where there are AMX tiles and many bf16 rows, it is one panel of W (common/amx.h); its sums are rounded in another order.
#include "codegen/kernels/nn/linear.h"
#include "codegen/kernels/common/amx.h"
#include "codegen/kernels/common/dot.h"
#include "codegen/kernels/common/operand.h"

using namespace k31::kernels;
using linear::Args, linear::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr int kMaxWidth = 2 * kLanes; // rows of W behind 16 output columns: 16, or 32 with `pair`

K31_INLINE int width() { return k31_config.pair ? 2 * kLanes : kLanes; }
K31_INLINE int64_t out_cols() { return k31_config.pair ? k31_config.n / 2 : k31_config.n; }

// The sums of R rows: rows of W are taken four at a time; past the last one it is repeated, its sums are not stored.
template <int R> K31_INLINE void sums_of(const Args *args, int64_t row, int64_t unit, float *sums) {
  const Config &c = k31_config;
  if (R > 1 && c.rows < R)
    return;
  const void *x = element(args->x, c.x_type, row * c.ld_x);
  for (int j = 0; j < width(); j += 4) {
    const void *w[4];
    for (int i = 0; i < 4; ++i) {
      int64_t n = unit * width() + j + i;
      w[i] = element(args->w, c.w_type, (n < c.n ? n : c.n - 1) * c.k);
    }
    dot_tile<R>(x, c.x_type, c.ld_x, w, c.w_type, c.k, sums + j, kMaxWidth);
  }
}

K31_INLINE void finish_row(const Args *args, int64_t row, int64_t unit, const float *sums) {
  const Config &c = k31_config;
  int64_t col = unit * kLanes;
  int n = out_cols() - col < kLanes ? (int)(out_cols() - col) : kLanes;
  if (!c.epilogue) {
    const auto [output, at] = output_column(c, (int32_t)col);
    return store_part(args->tail[c.extras + output], (DType)c.out_type[output], row * c.out_ld[output] + at,
                      load_vector<f32x16>(sums), n);
  }
  float in[(2 + kMaxOperands) * kLanes], out[kMaxOperands * kLanes];
  memcpy(in, sums, kLanes * sizeof(float));
  if (c.pair)
    memcpy(in + kLanes, sums + kLanes, kLanes * sizeof(float));
  int elements = c.pair ? 2 : 1;
  K31_UNROLL for (int i = 0; i < c.extras; ++i) {
    Operand op{(OperandKind)c.extra_kind[i], (DType)c.extra_type[i], c.extra_ld[i], c.extra_cols[i]};
    f32x16 v = load_operand(args->tail[i], op, out_cols(), row, col, n);
    memcpy(in + (elements + i) * kLanes, &v, sizeof v);
  }
  k31_region_0(in, out);
  K31_UNROLL for (int i = 0; i < c.outputs; ++i) store_part(args->tail[c.extras + i], (DType)c.out_type[i],
                                                            row * c.out_ld[i] + col, load_vector<f32x16>(out + i * kLanes), n);
}

// Rows from which on tiles pay: fewer are done while W comes from memory.
constexpr int64_t kManyRows = 9;

K31_INLINE bool tiles_fit() {
  const Config &c = k31_config;
  return k31_bf16_products >= 2 && c.rows != 1 && c.x_type == DType::bf16 && c.w_type == DType::bf16 && c.k % 32 == 0;
}

// All live rows by panels of W. Not inlined: only here a task needs the stack that a panel takes.
__attribute__((noinline)) void by_panels(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  Panel panel;
  const int64_t live = *args->live;
  Range panels = share((c.n + kPanel - 1) / kPanel, task, tasks);
  for (int64_t p = panels.begin; p < panels.end; ++p) {
    const int64_t first = p * kPanel, left = c.n - first;
    const int columns = left < kPanel ? (int)(left + kLanes - 1) / kLanes * kLanes : kPanel;
    const auto pairs = [&](int n, int64_t k) __attribute__((always_inline)) {
      return first + n < c.n ? load_vector<u32x16>((const uint16_t *)args->w + (first + n) * c.k + k) : (u32x16)0u;
    };
    for (int64_t row = 0; row < live; row += kPanelRows) {
      const int rows = live - row < kPanelRows ? (int)(live - row) : kPanelRows;
      multiply_panel((const uint16_t *)args->x + row * c.ld_x, c.ld_x, rows, c.k, columns, panel, pairs);
      for (int r = 0; r < rows; ++r)
        for (int n = 0; n < columns; n += width())
          finish_row(args, row + r, (first + n) / width(), panel.sums + r * kPanel + n);
    }
  }
}

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  int64_t live = *args->live, units = (out_cols() + kLanes - 1) / kLanes;
  if (tiles_fit() && live >= kManyRows)
    return by_panels(args, task, tasks);
  int64_t block = block_rows(c.k, c.x_type), blocks = (live + block - 1) / block;
  Range work = share(blocks * units, task, tasks);
  for (int64_t item = work.begin; item < work.end; ++item) {
    int64_t unit = item % units, first = item / units * block, last = first + block < live ? first + block : live;
    for (int64_t row = first; row < last;) {
      alignas(64) float sums[kMaxTileRows * kMaxWidth];
      int rows = tile_rows(last - row, most_tile_rows());
      switch (rows) {
      case 1:
        sums_of<1>(args, row, unit, sums);
        break;
      case 2:
        sums_of<2>(args, row, unit, sums);
        break;
      case 3:
        sums_of<3>(args, row, unit, sums);
        break;
      default:
        sums_of<4>(args, row, unit, sums);
        break;
      }
      for (int r = 0; r < rows; ++r)
        finish_row(args, row + r, unit, sums + r * kMaxWidth);
      row += rows;
    }
  }
}
