// A sum over the ranks by peer and the row op behind it in one kernel (coll/peer.h, nn/row.h). A rank pushes its rows to its
// peers, adds up what came in the order of the ranks, rounded once as coll.peer does, writes the sum to `sum`, and goes on with
// the region on those rows. So the two give the same bits as one behind the other, and others may read the sum.
//
// All rows of the capacity are exchanged, since a rank does not know how many live ones its peers have of a scatter; the region
// runs on the live ones.
#pragma once
#include "codegen/kernels/coll/peer.h"
#include "codegen/kernels/nn/row.h"

namespace k31::kernels::sum_row {

struct Config {
  kernels::peer::Config peer; // form sum or scatter; words of one row
  kernels::row::Config row;   // rows: 0
  int32_t at = 0;             // the input of the row op that is the sum
  int32_t rows = 0;           // of the sum, capacity; on CUDA the grid tells

  template <class F> static void fields(F &&f) {
    f("peer", &Config::peer), f("row", &Config::row), f("at", &Config::at), f("rows", &Config::rows);
  }
};

struct Args {
  const void *x; // [T, C], of a scatter [ranks T, C]
  void *sum;     // [T, C]
  const int32_t *live;
  // The inputs of the row op without the sum, its outputs, the rank's own area.
  void *tail[2 * kMaxOperands];

  constexpr void *area(const Config &c) const { return tail[c.row.inputs - 1 + c.row.outputs]; }
  constexpr void *input(const Config &c, int i) const { return i == c.at ? sum : tail[i - (i > c.at)]; }
  constexpr void *output(const Config &c, int i) const { return tail[c.row.inputs - 1 + i]; }
};

} // namespace k31::kernels::sum_row
