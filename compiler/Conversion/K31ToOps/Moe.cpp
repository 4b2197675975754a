// Mixture of experts: route, group rows by expert, two products over the grouped rows, weighted sum, shared experts.
#include "dialects/Moe/Moe.h"
#include "compiler/Conversion/K31ToOps/Conversions.h"

using namespace mlir;

namespace k31 {

// One matrix an expert over the grouped rows. `names` are w1 and w3 side by side, or w2; MXFP4 when the checkpoint has their
// packed form.
static Value experts(OpsBuilder &o, model::LatentMoEOp op, StringRef name, ArrayRef<StringRef> names, Value rows, Value offsets,
                     Cut cut) {
  DictionaryAttr weights = op.getWeights();
  auto joint = [&](StringRef suffix) {
    return llvm::map_to_vector(names, [&](StringRef n) { return o.symbol(weights, (n + suffix).str()); });
  };
  const bool packed = o.symbol(weights, (names[0] + "_packed").str()) != nullptr;
  Value w = o.weight(packed ? (name + ".weight_packed").str() : name.str(), joint(packed ? "_packed" : ""), cut);
  Value scale = packed ? o.weight((name + ".weight_scale").str(), joint("_scale"), cut) : Value();
  const int64_t n = cast<RankedTensorType>(w.getType()).getDimSize(1);
  return moe::GroupedLinearOp::create(o.b, o.at(name), o.rowsOf(rows, n, o.activation), rows, w, scale, offsets, false,
                                      ArrayAttr());
}

// The routed part in its own space: [T, latent] to [T, latent]; router logits come from the full input. Every rank of an expert
// group sees the rows of all its dp groups, adds up what its own experts say of them, and gets back the sums of its own rows.
static Value routed(OpsBuilder &o, model::LatentMoEOp op, Value x, Value z) {
  DictionaryAttr w = op.getWeights();
  FlatSymbolRefAttr gate = o.symbol(w, "gate");
  Value logits = o.linear(x, gate, o.f32());
  auto route = moe::RouteOp::create(o.b, o.at("block_sparse_moe.route"), logits, o.weight(o.symbol(w, "e_score_correction_bias")),
                                    o.live, op.getTopK(), op.getRenormalize(), op.getScale());
  const Cut cut = o.cutOf(coll::Axis::ep, coll::ShardOf::members, op.getExperts(), "experts");
  const int64_t held = cut.share(op.getExperts());
  Value rows = o.allGather(z, coll::Axis::edp), ids = o.allGather(route.getIds(), coll::Axis::edp),
        weights = o.allGather(route.getWeights(), coll::Axis::edp), live = o.liveOfGroups ? o.liveOfGroups : o.live;
  auto groups = moe::PermuteOp::create(o.b, o.at("block_sparse_moe.permute"), rows, ids, live, o.expertRank, uint64_t(0),
                                       static_cast<uint64_t>(held));
  const std::string name = "block_sparse_moe.experts.";
  Value both = experts(o, op, name + "w13", {"w1", "w3"}, groups.getRows(), groups.getOffsets(), cut);
  // The map covers the grouped rows, of which the last offset says how many there are.
  Value tokens = std::exchange(o.live, o.columns(groups.getOffsets(), held, held + 1));
  Value hidden = gatedActivation(o, name + "w13", both, op.getActivation());
  o.live = tokens;
  Value out = experts(o, op, name + "w2", {"w2"}, hidden, groups.getOffsets(), cut);
  Value sum =
      moe::CombineOp::create(o.b, o.at("block_sparse_moe.combine"), o.rowsOf(rows, OpsBuilder::columnsOf(out), o.activation), out,
                             weights, groups.getSlot(), live);
  return o.reduceScatter(sum, coll::Axis::edp);
}

Value convert(OpsBuilder &o, model::LatentMoEOp op) {
  DictionaryAttr w = op.getWeights();
  Value x = o.full(op.getX());
  const Mesh &mesh = o.state.mesh;
  // What is left to add up over: the ranks of a tp group when experts are spread over all of them, else those of an expert group.
  const coll::Axis rest = mesh.ep >= mesh.tp ? coll::Axis::tp : coll::Axis::ep;
  if (!op.getLatent()) {
    Value y = routed(o, op, x, x);
    if (rest == coll::Axis::ep)
      y = o.allReduce(y, rest);
    Value shared = gatedMLP(o, x, w, "shared.", op.getActivation());
    if (rest == coll::Axis::tp) // one sum for both
      return o.sumRows(o.add("block_sparse_moe.add", y, shared));
    y = o.ownRows(y), shared = o.sumRows(shared);
    OnRows rows(o, o.own);
    return o.add("block_sparse_moe.add", y, shared);
  }
  Value y = o.allReduce(routed(o, op, x, o.linear(x, o.symbol(w, "routed_expert_down_proj"), o.activation)), rest);
  if (FlatSymbolRefAttr gain = o.symbol(w, "routed_expert_norm"))
    y = o.rmsNorm(y, gain, op.getEps().convertToFloat());
  // Each rank carries its columns of the latent sum back, and what it has of the shared experts: one sum over tp for both.
  const Cut cut = o.hidden(coll::ShardOf::columns, OpsBuilder::columnsOf(y));
  y = o.linear(o.partOfColumns(y, cut), o.symbol(w, "routed_expert_up_proj"), o.activation, cut);
  Value shared = gatedMLP(o, x, w, "shared.", op.getActivation());
  return o.sumRows(o.add("block_sparse_moe.add", y, shared));
}

} // namespace k31
