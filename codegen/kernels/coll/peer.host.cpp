// coll.peer on the host: one task exchanges everything, with one block of the area.
#include "codegen/kernels/coll/peer_exchange.h"

using namespace k31::kernels;
using peer::Args, peer::Config, peer::Exchange, peer::kWord, peer::Part;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t) {
  const Config &c = k31_config;
  if (task > 0)
    return;
  const char *x = (const char *)args->x;
  char *out = (char *)args->out(c);
  void *own = args->area(c);
  uint32_t *counter = c.area().counter(own, 0);
  Exchange peers{c, own, *counter + 1};
  const int rank = peers.table.rank;
  const int64_t steps = steps_of(c, 1), piece = c.words * kWord;
  auto total = [&](int d) -> int64_t {
    if (c.form != peer::exchange)
      return c.words;
    const int64_t words = (int64_t)args->live()[d] * c.unit;
    return words < 0 ? 0 : words > c.words ? c.words : words;
  };
  int64_t totals[kMaxPeers];
  for (int64_t step = 0; step < steps; ++step) {
    const Part part = peer::part_of(c.words, steps, step);
    const int64_t begin = part.begin * kWord, bytes = part.count * kWord;
    for (int d = 0; d < c.ranks; ++d) {
      const Part there = c.form == peer::exchange ? peer::part_of(total(d), steps, step) : part;
      const char *from = x + (c.pieces() > 1 ? d * piece : 0) + there.begin * kWord;
      if (d != rank)
        memcpy(peers.slot_at(d), from, there.count * kWord);
      else if (c.form == peer::exchange)
        memcpy(out + d * piece + there.begin * kWord, from, there.count * kWord);
      else if (c.form == peer::gather)
        memcpy(out + d * piece + begin, from, bytes);
    }
    if (!peers.meet(totals, total))
      return;
    if (c.form == peer::sum || c.form == peer::scatter) {
      peers.sum(x + (c.form == peer::scatter ? rank * piece : 0) + begin, out + begin, part.count);
    } else {
      if (c.form == peer::sum_pieces) {
        char *sums = out + rank * piece + begin;
        peers.sum(x + rank * piece + begin, sums, part.count);
        ++peers.number;
        for (int d = 0; d < c.ranks; ++d)
          if (d != rank)
            memcpy(peers.slot_at(d), sums, bytes);
        if (!peers.meet(totals, total))
          return;
      }
      for (int s = 0; s < c.ranks; ++s)
        if (s != rank) {
          const Part there = c.form == peer::exchange ? peer::part_of(totals[s], steps, step) : part;
          memcpy(out + s * piece + there.begin * kWord, peers.slot_of(s), there.count * kWord);
        }
    }
    ++peers.number;
  }
  *counter = peers.number - 1;
}
