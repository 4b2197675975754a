// coll.unpack on the host: each task takes its share of the rows of each piece.
#include "codegen/kernels/coll/unpack.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using unpack::Args, unpack::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const PieceForm form = c.form();
  for (int64_t piece = 0; piece < c.size; ++piece) {
    int32_t count;
    memcpy(&count, form.count(args->pieces, piece), sizeof count);
    if (task == 0)
      args->live[piece] = count;
    Range rows = share(count, task, tasks);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t to = piece * c.capacity + row;
      memcpy(args->ids + to * c.top_k, form.ids(args->pieces, piece, row), c.top_k * 4);
      memcpy(args->weights + to * c.top_k, form.weights(args->pieces, piece, row), c.top_k * 4);
      memcpy(element(args->out, c.type, to * c.cols), form.values(args->pieces, piece, row), c.cols * bytes_of(c.type));
    }
  }
}
