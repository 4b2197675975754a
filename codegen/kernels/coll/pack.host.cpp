// coll.pack on the host: a task makes whole pieces, one after the other.
#include "codegen/kernels/coll/pack.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using pack::Args, pack::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t tasks) {
  const Config &c = k31_config;
  const PieceForm form = c.form();
  const LiveRows rows = args->rows(c);
  const int64_t live = rows.count();
  void *pieces = args->pieces(c);
  Range ranks = share(c.size, task, tasks);
  for (int64_t rank = ranks.begin; rank < ranks.end; ++rank) {
    const uint32_t begin = args->first(c) + (int32_t)rank * c.share;
    int32_t count = 0;
    for (int64_t i = 0; i < live; ++i) {
      const int64_t row = rows.row(i);
      int32_t slot = -1;
      if (args->goes(c, row, begin)) {
        const int32_t place = count++;
        slot = (int32_t)rank * c.room + place;
        memcpy(form.ids(pieces, rank, place), args->ids + row * c.top_k, c.top_k * 4);
        memcpy(form.weights(pieces, rank, place), args->weights + row * c.top_k, c.top_k * 4);
        memcpy(form.values(pieces, rank, place), element(args->x, c.type, row * c.ld_x), c.cols * bytes_of(c.type));
      }
      args->slot(c)[row * c.size + rank] = slot;
    }
    memcpy(form.count(pieces, rank), &count, sizeof count);
    args->units(c)[rank] = form.units(count);
  }
}
