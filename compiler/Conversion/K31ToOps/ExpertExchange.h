// Rows of one rank on their way to the ranks of their experts, and what those say of them on the way back.
#pragma once
#include "compiler/Conversion/K31ToOps/OpsBuilder.h"

namespace k31 {

// Rows with their choices; `live` counts those of each group that follow each other in x.
struct ChosenRows {
  mlir::Value x, ids, weights, live;
};

// One leg: between the ranks of an axis, each of which holds `share` experts, or whose neighbours on the next leg do. Ranks of a
// host (axis node) are told apart by the rank's coordinate on ep.
class ExchangeLeg {
public:
  ExchangeLeg(coll::Axis axis, int64_t share) : axis(axis), share(share) {}

  // [T, C] to the rows that came from all ranks of the axis, [size T, C].
  ChosenRows there(OpsBuilder &o, const ChosenRows &rows);
  // Results [size T, C] of those rows to sums [T, C] of the rows that went.
  mlir::Value back(OpsBuilder &o, mlir::Value results);

private:
  coll::Axis axis;
  int64_t share;
  mlir::Value slot, sent, came;
};

// This rank's share of the rows of its tp group, whose number becomes the builder's live; x itself when tp is 1.
mlir::Value takeOwnRows(OpsBuilder &o, mlir::Value x);

} // namespace k31
