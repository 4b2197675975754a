// What a rank holds and what it needs from others: the only place where shares of weights are cut.
#include "compiler/Conversion/K31ToOps/OpsBuilder.h"
#include "compiler/LinkCost.h"

using namespace mlir;

namespace k31 {

Cut OpsBuilder::cutOf(coll::Axis axis, coll::ShardOf of, int64_t units, StringRef what) {
  const Cut cut{axis, of, units, sizeOf(state.mesh, axis)};
  if (cut.servesAll())
    return cut;
  // The next smaller size of the axis that gives every rank a share, and the next larger one if there is any.
  const int64_t share = cut.share(units), fewer = (units + share - 1) / share;
  Cut more = cut;
  while (more.ranks <= units && !more.servesAll())
    ++more.ranks;
  std::string why = llvm::formatv("{0}={1}: {2} {3} in shares of {4} leave rank {5} of the axis without any; sizes that fit: {5}",
                                  coll::stringifyAxis(axis), cut.ranks, units, what, share, fewer);
  if (more.servesAll())
    why += llvm::formatv(" or {0}", more.ranks);
  state.refuse(why);
  return cut;
}

// Whole groups of 16, the kernels' vector and the rows that gate and up take in turns, as long as every rank gets one.
Cut OpsBuilder::hidden(coll::ShardOf of, int64_t width) {
  for (int64_t group : {16, 8, 4, 2})
    if (const Cut cut{coll::Axis::tp, of, width / group, state.mesh.tp}; width % group == 0 && cut.servesAll())
      return cut;
  return cutOf(coll::Axis::tp, of, width, "hidden columns");
}

// Each folds to its operand when the axis has one rank.
Value OpsBuilder::allReduce(Value x, coll::Axis axis) {
  return b.createOrFold<coll::AllReduceOp>(x.getLoc(), x, axis, static_cast<uint64_t>(sizeOf(state.mesh, axis)));
}
Value OpsBuilder::allGather(Value x, coll::Axis axis) {
  return b.createOrFold<coll::AllGatherOp>(x.getLoc(), x, axis, static_cast<uint64_t>(sizeOf(state.mesh, axis)));
}
Value OpsBuilder::reduceScatter(Value x, coll::Axis axis) {
  return b.createOrFold<coll::ReduceScatterOp>(x.getLoc(), x, axis, static_cast<uint64_t>(sizeOf(state.mesh, axis)));
}

Value OpsBuilder::partOfColumns(Value x, Cut cut) {
  if (!cut.isCut())
    return x;
  assert(cut.axis == coll::Axis::tp && "only the coordinate on tp is at hand");
  return coll::PartOp::create(b, x.getLoc(), rowsOf(x, cut.share(columnsOf(x)), activation), x, live, tensorRank);
}

Value OpsBuilder::joinColumns(Value x, coll::Axis axis, int64_t columns) {
  const int64_t size = sizeOf(state.mesh, axis);
  if (size == 1)
    return x;
  auto all = coll::AllGatherOp::create(b, x.getLoc(), x, axis, static_cast<uint64_t>(size));
  auto type = cast<RankedTensorType>(x.getType());
  return coll::JoinOp::create(b, x.getLoc(), type.clone({type.getDimSize(0), columns}), all, live, static_cast<uint64_t>(size));
}

} // namespace k31
