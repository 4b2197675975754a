// coll.sum_row on the host: one task, with one block of the area, as many rows at a time as a slot holds.
#include "codegen/kernels/coll/sum_row.h"
#include "codegen/kernels/coll/peer_exchange.h"
#include "codegen/kernels/nn/row_groups.h"

using namespace k31::kernels;
using peer::Exchange, peer::kWord, sum_row::Args, sum_row::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

struct Kernel {
  K31_INLINE const row::Config &config() { return k31_config.row; }
};

} // namespace

void k31_entry(const Args *args, uint32_t task, uint32_t) {
  const Config &c = k31_config;
  if (task > 0)
    return;
  const row::Args of_row = row::args_of(*args, c, args->live);
  const int64_t live = *args->live, row_bytes = c.peer.words * kWord, at_once = c.peer.region / c.peer.words;
  const bool scatter = c.peer.form == peer::scatter;
  void *own = args->area(c);
  uint32_t *counter = c.peer.area().counter(own, 0);
  Exchange peers{c.peer, own, *counter + 1};
  int64_t totals[kMaxPeers];
  for (int64_t first = 0; first < c.rows; first += at_once) {
    const int64_t count = c.rows - first < at_once ? c.rows - first : at_once;
    const auto addend = [&](int rank) { // of the piece for it
      return (const char *)args->x + ((scatter ? rank * (int64_t)c.rows : 0) + first) * row_bytes;
    };
    for (int d = 0; d < c.peer.ranks; ++d)
      if (d != peers.table.rank)
        memcpy(peers.slot_at(d), addend(d), count * row_bytes);
    if (!peers.meet(totals, [&](int) { return count * c.peer.words; }))
      return;
    peers.sum(addend(peers.table.rank), (char *)args->sum + first * row_bytes, count * c.peer.words);
    for (int64_t row = first; row < first + count && row < live; ++row)
      row::Groups<Kernel>::whole_row(&of_row, row);
    ++peers.number;
  }
  *counter = peers.number - 1;
}
