// nn.map and nn.row on the host: the fused region over the groups of columns of the live rows. A row's group is never split
// between tasks, a map's row may be.
#include "codegen/kernels/nn/row_groups.h"

using namespace k31::kernels;
using row::Args, row::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {
struct Kernel {
  K31_INLINE const Config &config() { return k31_config; }
};
} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  using Groups = row::Groups<Kernel>;
  const int64_t parts = (k31_config.cols + Groups::columns() - 1) / Groups::columns();
  Range units = share(*args->live * parts, task, tasks);
  for (int64_t unit = units.begin; unit < units.end; ++unit)
    Groups::group(args, unit / parts, unit % parts * Groups::columns());
}
