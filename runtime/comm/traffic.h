// What the ranks of a mesh hand to each other, counted while collectives run: bytes that leave a rank for another one, of the
// data alone.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <array>

namespace k31::comm {

struct Moved {
  uint64_t capacity = 0; // what whole pieces are
  uint64_t live = 0;     // what was moved
};

struct Traffic {
  uint64_t calls = 0;
  Moved node, across; // to ranks of the same host, and of others

  void add(bool far, uint64_t capacity, uint64_t live) {
    Moved &to = far ? across : node;
    to.capacity += capacity, to.live += live;
  }
};

// By CollectiveOp and MeshAxis.
struct TrafficTable {
  Traffic of[size_t(plan::CollectiveOp::MAX) + 1][size_t(plan::MeshAxis::MAX) + 1];

  Traffic &at(plan::CollectiveOp op, plan::MeshAxis axis) { return of[size_t(op)][size_t(axis)]; }
  const Traffic &at(plan::CollectiveOp op, plan::MeshAxis axis) const { return of[size_t(op)][size_t(axis)]; }
};

} // namespace k31::comm
