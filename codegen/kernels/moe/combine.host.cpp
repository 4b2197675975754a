// moe.combine on the host: each task sums its share of (row, 64 columns) over the choices, in order, in fp32.
#include "codegen/kernels/moe/combine.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using combine::Args, combine::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr int kColumns = 64;

K31_INLINE void sum_columns(const Args *args, int64_t row, int64_t col, int n) { // n in 1..16 columns
  const Config &c = k31_config;
  f32x16 acc = splat(0);
  for (int i = 0; i < c.top_k; ++i) {
    int64_t slot = args->slot(c)[row * c.top_k + i];
    if (slot >= 0)
      acc += splat(c.weighted ? args->weights()[row * c.top_k + i] : 1) * load_part(args->x, c.x_type, slot * c.ld_x + col, n);
  }
  store_part(args->out(c), c.out_type, row * c.ld_out + col, acc, n);
}

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  int64_t parts = (c.cols + kColumns - 1) / kColumns;
  const LiveRows rows = args->rows(c);
  Range units = share(rows.count() * parts, task, tasks);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    int64_t row = rows.row(unit / parts), col = unit % parts * kColumns, end = col + kColumns < c.cols ? col + kColumns : c.cols;
    for (; col + kLanes <= end; col += kLanes)
      sum_columns(args, row, col, kLanes);
    if (col < end)
      sum_columns(args, row, col, (int)(end - col));
  }
}
