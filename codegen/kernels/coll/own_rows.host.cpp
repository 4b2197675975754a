// coll.own_rows on the host: one run of bytes a row.
#include "codegen/kernels/coll/own_rows.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using own_rows::Args, own_rows::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  if (task == 0)
    *args->own_live = args->own(c);
  const int64_t first = args->first(c);
  Range rows = share(args->own(c), task, tasks);
  for (int64_t row = rows.begin; row < rows.end; ++row)
    memcpy(element(args->out, c.type, row * c.cols), element(args->x, c.type, (first + row) * c.ld_x), c.cols * bytes_of(c.type));
}
