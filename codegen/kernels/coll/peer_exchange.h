// An exchange of a host kernel with its peers (peer_area.h): one task does it, with one block of the area.
#pragma once
#include "codegen/kernels/coll/peer.h"
#include "codegen/kernels/common/host.h"

namespace k31::kernels::peer {

constexpr int64_t kWord = 16; // bytes

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
      if (table.area[d] != own)
        __atomic_store_n(area.flag(table.area[d], number, 0, table.rank), (uint64_t)number << 32 | (uint32_t)totals[d],
                         __ATOMIC_RELEASE);
    }
    for (int s = 0; s < c.ranks; ++s)
      if (table.area[s] != own) {
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

} // namespace k31::kernels::peer
