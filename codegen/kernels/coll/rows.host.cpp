// coll.rows on the host: one run of bytes a row.
#include "codegen/kernels/coll/rows.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using rows::Args, rows::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const int64_t first = (int64_t)*args->coordinate * c.share;
  Range own = share(*args->live, task, tasks);
  for (int64_t row = own.begin; row < own.end; ++row)
    memcpy(element(args->out, c.type, row * c.cols), element(args->x, c.type, (first + row) * c.ld_x), c.cols * bytes_of(c.type));
}
