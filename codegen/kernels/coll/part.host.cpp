// coll.part on the host: one run of bytes a row.
#include "codegen/kernels/coll/part.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using part::Args, part::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const int64_t begin = (int64_t)*args->coordinate * c.part, width = args->width(c);
  Range rows = share(*args->live, task, tasks);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (width > 0)
      memcpy(element(args->out, c.type, row * c.part), element(args->x, c.type, row * c.ld_x + begin), width * bytes_of(c.type));
    memset(element(args->out, c.type, row * c.part + width), 0, (c.part - width) * bytes_of(c.type));
  }
}
