// Embedding, norms, residual mixes, the dense MLP and the head.
#include "compiler/Conversion/K31ToOps/Conversions.h"

using namespace mlir;

namespace k31 {

// Each rank looks up its columns of the table: of all weights this one is read the least for the room that it takes.
Value convert(OpsBuilder &o, model::EmbedOp op) {
  FlatSymbolRefAttr table = o.symbol(op.getWeights(), "embed_tokens");
  const int64_t hidden = o.state.columns(table);
  Value w = o.weight(table, {}, o.hidden(coll::ShardOf::columns, hidden)), tokens = o.get(op.getTokens());
  Value part = nn::EmbedOp::create(o.b, o.at(OpsBuilder::label(table)), o.rowsOf(tokens, OpsBuilder::columnsOf(w), o.activation),
                                   tokens, w, o.live);
  return o.ownRows(o.joinColumns(part, coll::Axis::tp, hidden));
}

Value convert(OpsBuilder &o, model::RMSNormOp op) {
  OnRows rows(o, o.own);
  return o.rmsNorm(o.get(op.getX()), o.symbol(op.getWeights(), "gain"), op.getEps().convertToFloat());
}

// Softmax over the sources of rsqrt(mean(s^2) + eps) sum(gain query s); the mixed values are raw.
Value convert(OpsBuilder &o, model::AttnResOp op) {
  OnRows rows(o, o.own);
  FlatSymbolRefAttr norm = o.symbol(op.getWeights(), "norm"), proj = o.symbol(op.getWeights(), "proj");
  SmallVector<Value> inputs = llvm::map_to_vector(op.getSources(), [&](Value source) { return o.get(source); });
  const size_t sources = inputs.size();
  const int64_t n = OpsBuilder::columnsOf(inputs[0]);
  const double eps = op.getEps().convertToFloat();
  inputs.append({o.weight(norm), o.weight(proj)});
  StringRef stem = proj.getValue();
  stem.consume_back("_proj");
  return o.row(OpsBuilder::label(FlatSymbolRefAttr::get(o.b.getContext(), stem)), "attn_res_mix", inputs, o.activation,
               [&](Scalars &s, ValueRange in) {
                 Value query = s.mul(in[sources], in[sources + 1]);
                 ValueRange values = in.take_front(sources);
                 SmallVector<Value> scores =
                     llvm::map_to_vector(values, [&](Value v) { return s.mul(s.inverseRms(v, n, eps), s.sum(s.mul(query, v))); });
                 return s.softmaxMix(scores, values);
               });
}

Value convert(OpsBuilder &o, model::AddOp op) {
  OnRows rows(o, o.own);
  return o.add("residual", o.get(op.getA()), o.get(op.getB()));
}

Value gatedActivation(OpsBuilder &o, StringRef label, Value both, model::ActivationAttr activation) {
  const int64_t width = OpsBuilder::columnsOf(both) / 2;
  Value gate = o.columns(both, 0, width), up = o.columns(both, width, 2 * width);
  auto number = [](FloatAttr attr) { return attr.getValue().convertToFloat(); };
  if (activation.getName() == "silu")
    return o.map(label, "silu_glu", {gate, up}, o.activation,
                 [](Scalars &s, ValueRange in) { return s.mul(s.silu(in[0]), in[1]); });
  return o.map(label, "situ", {gate, up}, o.activation, [&](Scalars &s, ValueRange in) {
    Value right = activation.getLinearBeta() ? s.softLimit(in[1], number(activation.getLinearBeta())) : in[1];
    return s.mul(s.situ(in[0], number(activation.getBeta())), right);
  });
}

// "mlp.gate_proj" to "mlp.gate_up_proj": the name of the two side by side.
static std::string jointName(FlatSymbolRefAttr gate) {
  StringRef name = gate.getValue();
  name.consume_back("gate_proj");
  return (name + "gate_up_proj").str();
}

Value gatedMLP(OpsBuilder &o, Value x, DictionaryAttr weights, StringRef prefix, model::ActivationAttr activation) {
  auto part = [&](StringRef name) { return o.symbol(weights, (prefix + name).str()); };
  std::string name = jointName(part("gate_proj"));
  const int64_t width = o.state.rows(part("gate_proj"));
  Value both = o.linear(x, name, {part("gate_proj"), part("up_proj")}, o.activation, o.hidden(coll::ShardOf::rows, width));
  return o.linear(gatedActivation(o, name, both, activation), part("down_proj"), o.activation,
                  o.hidden(coll::ShardOf::columns, width));
}

Value convert(OpsBuilder &o, model::MLPOp op) {
  return o.sumRows(gatedMLP(o, o.full(op.getX()), op.getWeights(), "", op.getActivation()));
}

HeadResults convertHead(OpsBuilder &o, model::HeadOp op, Value logitRows, Value liveLogits, Value sampling) {
  Value x = o.full(op.getX());
  const int64_t L = cast<RankedTensorType>(logitRows.getType()).getDimSize(0);
  Value chosen = nn::GatherOp::create(o.b, o.at("logit_rows"), RankedTensorType::get({L, OpsBuilder::columnsOf(x)}, o.activation),
                                      x, logitRows, liveLogits);
  o.live = liveLogits; // from here on rows are logit rows
  FlatSymbolRefAttr head = o.symbol(op.getWeights(), "lm_head");
  const int64_t vocab = o.state.rows(head);
  Value share = o.linear(chosen, head, o.f32(), o.cutOf(coll::Axis::tp, coll::ShardOf::rows, vocab, "rows of lm_head"));
  Value logits = o.joinColumns(share, coll::Axis::tp, vocab);
  Value sampled = nn::SampleOp::create(o.b, o.at("sample"), RankedTensorType::get({L}, o.b.getI32Type()), logits, sampling,
                                       Value(), Value(), liveLogits);
  return {logits, sampled};
}

} // namespace k31
