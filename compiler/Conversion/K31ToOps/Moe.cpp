// Mixture of experts: route, group rows by expert, two products over the grouped rows, weighted sum, shared experts.
#include "dialects/Moe/Moe.h"
#include "compiler/Conversion/K31ToOps/Conversions.h"
#include "compiler/Conversion/K31ToOps/ExpertExchange.h"
#include "compiler/Conversion/K31ToOps/ExpertForm.h"

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

static moe::RouteOp choose(OpsBuilder &o, model::LatentMoEOp op, Value x) {
  DictionaryAttr w = op.getWeights();
  Value logits = o.linear(x, o.symbol(w, "gate"), o.f32());
  return moe::RouteOp::create(o.b, o.at("block_sparse_moe.route"), logits, o.weight(o.symbol(w, "e_score_correction_bias")),
                              o.live, op.getTopK(), op.getRenormalize(), op.getScale());
}

// What the experts of this rank say of the rows, weighted: [T, C] to [T, C].
static Value held(OpsBuilder &o, model::LatentMoEOp op, const ChosenRows &rows, const Note *why) {
  const Cut cut = o.cutOf(coll::Axis::ep, coll::ShardOf::members, op.getExperts(), "experts");
  const int64_t own = cut.share(op.getExperts());
  auto groups = moe::PermuteOp::create(o.b, o.at("block_sparse_moe.permute"), rows.x, rows.ids, rows.live, o.expertRank,
                                       uint64_t(0), static_cast<uint64_t>(own));
  if (why)
    note(groups, *why);
  const std::string name = "block_sparse_moe.experts.";
  Value both = experts(o, op, name + "w13", {"w1", "w3"}, groups.getRows(), groups.getOffsets(), cut);
  // The map covers the grouped rows, of which the last offset says how many there are.
  Value tokens = std::exchange(o.live, o.columns(groups.getOffsets(), own, own + 1));
  Value hidden = gatedActivation(o, name + "w13", both, op.getActivation());
  o.live = tokens;
  Value out = experts(o, op, name + "w2", {"w2"}, hidden, groups.getOffsets(), cut);
  return moe::CombineOp::create(o.b, o.at("block_sparse_moe.combine"), o.rowsOf(rows.x, OpsBuilder::columnsOf(out), o.activation),
                                out, rows.weights, groups.getSlot(), rows.live);
}

static Value latentOf(OpsBuilder &o, model::LatentMoEOp op, Value x) {
  return op.getLatent() ? o.linear(x, o.symbol(op.getWeights(), "routed_expert_down_proj"), o.activation) : x;
}

// The routed part in its own space, [T, H] to [T, latent], when every rank of an expert group sees the rows of all its dp groups:
// it adds up what its own experts say of them, and gets back the sums of its own dp group's rows. What the other ranks of the tp
// group say is yet to be added.
static Value replicated(OpsBuilder &o, model::LatentMoEOp op, Value x, const Note *why) {
  Value z = latentOf(o, op, x);
  auto route = choose(o, op, x);
  Value sum = held(o, op,
                   {o.allGather(z, coll::Axis::edp), o.allGather(route.getIds(), coll::Axis::edp),
                    o.allGather(route.getWeights(), coll::Axis::edp), o.liveOfGroups ? o.liveOfGroups : o.live},
                   why);
  return o.reduceScatter(sum, coll::Axis::edp);
}

// The same when rows travel to their experts: each rank of a tp group has a share of the rows, sends them and gets their sums,
// whole: [T / tp, latent].
static Value exchanged(OpsBuilder &o, model::LatentMoEOp op, const ExpertChoice &choice) {
  Value tokens = o.live, own = o.get(op.getX());
  if (o.bucket.isSharded())
    o.live = o.own.live;
  else
    own = takeOwnRows(o, own);
  Value z = latentOf(o, op, own);
  auto route = choose(o, op, own);
  ChosenRows rows{z, route.getIds(), route.getWeights(), o.live};
  const int64_t share = o.cutOf(coll::Axis::ep, coll::ShardOf::members, op.getExperts(), "experts").share(op.getExperts());
  SmallVector<ExchangeLeg> legs;
  if (choice.form == ExpertForm::twoLevel)
    legs = {{coll::Axis::rail, share * o.state.mesh.node}, {coll::Axis::node, share}};
  else
    legs = {{coll::Axis::ep, share}};
  for (ExchangeLeg &leg : legs)
    rows = leg.there(o, rows);
  Value y = held(o, op, rows, &*choice.why);
  for (ExchangeLeg &leg : llvm::reverse(legs))
    y = leg.back(o, y);
  o.live = tokens;
  return y;
}

Value convert(OpsBuilder &o, model::LatentMoEOp op) {
  DictionaryAttr w = op.getWeights();
  Value x = o.full(op.getX());
  const Mesh &mesh = o.state.mesh;
  const ExpertChoice choice = chooseExpertForm(mesh, o.state.options, o.bucket, o.activation, op);
  const bool whole = choice.form != ExpertForm::replicate; // is nothing of the sum missing?
  Value y = whole ? exchanged(o, op, choice) : replicated(o, op, x, choice.why ? &*choice.why : nullptr);
  // What is left to add up over: the ranks of a tp group when experts are spread over all of them, else those of an expert group.
  const coll::Axis rest = mesh.ep >= mesh.tp ? coll::Axis::tp : coll::Axis::ep;
  if (!op.getLatent()) {
    if (!whole && rest == coll::Axis::ep)
      y = o.allReduce(y, rest);
    Value shared = gatedMLP(o, x, w, "shared.", op.getActivation());
    if (!whole && rest == coll::Axis::tp) // one sum for both
      return o.sumRows(o.add("block_sparse_moe.add", y, shared));
    shared = o.sumRows(shared);
    if (!whole)
      y = o.ownRows(y);
    else if (!o.bucket.isSharded())
      y = o.allGather(y, coll::Axis::tp);
    OnRows rows(o, o.own);
    return o.add("block_sparse_moe.add", y, shared);
  }
  y = whole ? o.allGather(y, coll::Axis::tp) : o.allReduce(y, rest);
  if (FlatSymbolRefAttr gain = o.symbol(w, "routed_expert_norm"))
    y = o.rmsNorm(y, gain, op.getEps().convertToFloat());
  // Each rank carries its columns of the latent sum back, and what it has of the shared experts: one sum over tp for both.
  const Cut cut = o.hidden(coll::ShardOf::columns, OpsBuilder::columnsOf(y));
  y = o.linear(o.partOfColumns(y, cut), o.symbol(w, "routed_expert_up_proj"), o.activation, cut);
  Value shared = gatedMLP(o, x, w, "shared.", op.getActivation());
  return o.sumRows(o.add("block_sparse_moe.add", y, shared));
}

} // namespace k31
