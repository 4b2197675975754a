// nn.embed on the host: one row copied (or converted) a token. A token outside the vocabulary gives a row of zeros.
#include "codegen/kernels/nn/embed.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using embed::Args, embed::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  Range rows = share(*args->live, task, tasks);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    int32_t token = args->tokens[row];
    int64_t to = row * c.hidden, from = (int64_t)token * c.hidden;
    if (token < 0 || token >= c.vocab) {
      memset(element(args->out, c.out_type, to), 0, c.hidden * bytes_of(c.out_type));
    } else if (c.table_type == c.out_type) {
      memcpy(element(args->out, c.out_type, to), element(args->table, c.table_type, from), c.hidden * bytes_of(c.out_type));
    } else {
      for (int64_t col = 0; col < c.hidden; col += kLanes) {
        int n = c.hidden - col < kLanes ? (int)(c.hidden - col) : kLanes;
        store_part(args->out, c.out_type, to + col, load_part(args->table, c.table_type, from + col, n), n);
      }
    }
  }
}
