// nn.gather on the host: one row copied an index.
#include "codegen/kernels/nn/gather.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using gather::Args, gather::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  Range rows = share(*args->live, task, tasks);
  for (int64_t row = rows.begin; row < rows.end; ++row)
    memcpy(element(args->out, c.type, row * c.ld_out), element(args->x, c.type, (int64_t)args->index[row] * c.ld_x),
           c.cols * bytes_of(c.type));
}
