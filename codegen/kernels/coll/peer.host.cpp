// coll.peer on the host: one task exchanges everything, with one block of the area.
#include "codegen/kernels/coll/peer.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using peer::Args, peer::Config, peer::Part;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

namespace {

constexpr int64_t kWord = 16;

struct Exchange {
  const Config &c;
  void *own;
  uint32_t number;
  PeerTable &table = *(PeerTable *)own;
  PeerArea area = c.area();

  char *slot_at(int to) const { return (char *)area.slot(table.area[to], number, 0, table.rank); }
  const char *slot_of(int from) const { return (const char *)area.slot(own, number, 0, from); }

  // Tells the peers that everything is written; totals[s]: words of the piece from rank s. False: a wait ended.
  template <class Total> bool meet(int64_t *totals, Total &&total) const {
    for (int d = 0; d < c.ranks; ++d) {
      totals[d] = total(d);
      if (d != table.rank)
        __atomic_store_n(area.flag(table.area[d], number, 0, table.rank), (uint64_t)number << 32 | (uint32_t)totals[d],
                         __ATOMIC_RELEASE);
    }
    for (int s = 0; s < c.ranks; ++s)
      if (s != table.rank) {
        uint64_t flag;
        for (uint32_t looks = 0;; ++looks) {
          flag = __atomic_load_n(area.flag(own, number, 0, s), __ATOMIC_ACQUIRE);
          if ((uint32_t)(flag >> 32) == number)
            break;
          if (!table.wait(&table, looks))
            return false;
        }
        totals[s] = (uint32_t)flag;
      }
    return true;
  }

  // The sum over the ranks; this rank's own addends stand at `mine`.
  void sum(const char *mine, char *to, int64_t words) const {
    const int64_t count = words * kWord / bytes_of(c.type);
    for (int64_t i = 0; i < count; i += kLanes) {
      const int n = count - i < kLanes ? (int)(count - i) : kLanes;
      f32x16 acc = load_part(table.rank == 0 ? mine : slot_of(0), c.type, i, n);
      for (int s = 1; s < c.ranks; ++s)
        acc += load_part(table.rank == s ? mine : slot_of(s), c.type, i, n);
      store_part(to, c.type, i, acc, n);
    }
  }
};

} // namespace

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
