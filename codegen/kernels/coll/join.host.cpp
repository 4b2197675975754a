// coll.join on the host: one run of bytes a row and rank.
#include "codegen/kernels/coll/join.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using join::Args, join::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  Range rows = share(*args->live, task, tasks);
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t rank = 0; rank < c.size; ++rank) {
      int64_t begin = rank * c.part, left = c.cols - begin, width = left < c.part ? left : c.part;
      memcpy(element(args->out, c.type, row * c.cols + begin), element(args->x, c.type, (rank * c.capacity + row) * c.part),
             width * bytes_of(c.type));
    }
}
