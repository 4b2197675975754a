// KDA, MLA and the DSA indexer. P = heads x head dimension, T = rows of the bucket.
#include "compiler/Conversion/K31ToOps/Conversions.h"
#include <cmath>

using namespace mlir;

namespace k31 {

constexpr int64_t kChunk = 16; // tokens of KDA's chunk form in prefill

// Pre-activations of the log decay, per head and key channel: W_fb (W_fa x) + dt_bias, then
// bound sigmoid(exp(A) z) with a bound, -exp(A) softplus(z) without one. fp32, at most 0.
static Value logDecay(OpsBuilder &o, model::KDAOp op, Value x) {
  DictionaryAttr w = op.getWeights();
  const Cut heads = o.headRows(op.getHeads());
  Value z = o.linear(o.linear(x, o.symbol(w, "f_a_proj"), o.activation), o.symbol(w, "f_b_proj"), o.f32(), heads);
  Value bias = o.weight(o.symbol(w, "dt_bias"), {}, heads);
  Value rate = o.weight(o.symbol(w, "A_log"), {static_cast<int64_t>(op.getHeads())}, heads); // the tensor may be padded
  std::optional<APFloat> bound = op.getGateBound();
  return o.map("self_attn.log_decay", "log_decay", {z, bias, rate}, o.f32(), [&](Scalars &s, ValueRange in) {
    Value shifted = s.add(in[0], in[1]), scale = s.exp(in[2]);
    if (bound)
      return s.mul(s.sigmoid(s.mul(scale, shifted)), bound->convertToFloat());
    return s.neg(s.mul(scale, s.softplus(shifted)));
  });
}

// q, k and v after their convolutions and SiLU, side by side: [T, 3 P].
static Value convolved(OpsBuilder &o, model::KDAOp op, Value x) {
  DictionaryAttr w = op.getWeights();
  auto joint = [&](StringRef suffix) {
    return SmallVector<FlatSymbolRefAttr>{o.symbol(w, ("q" + suffix).str()), o.symbol(w, ("k" + suffix).str()),
                                          o.symbol(w, ("v" + suffix).str())};
  };
  const Cut heads = o.headRows(op.getHeads());
  Value qkv = o.linear(x, "self_attn.qkv_proj", joint("_proj"), o.activation, heads);
  Value taps = o.weight("self_attn.qkv_conv1d", joint("_conv1d"), heads);
  int64_t channels = OpsBuilder::columnsOf(qkv);
  Value window = o.cache(attn::CacheKind::conv, {static_cast<int64_t>(op.getTaps()) - 1, channels}, o.activation);
  Value sums = attn::ShortConvOp::create(o.b, o.at("self_attn.qkv_conv1d"), o.rowsOf(qkv, channels, o.f32()), qkv, taps, window,
                                         o.batch, ArrayAttr());
  return o.map("self_attn.qkv_conv1d", "silu", {sums}, o.activation, [](Scalars &s, ValueRange in) { return s.silu(in[0]); });
}

Value convert(OpsBuilder &o, model::KDAOp op) {
  DictionaryAttr w = op.getWeights();
  const Cut rows = o.headRows(op.getHeads()), columns = o.headColumns(op.getHeads());
  const int64_t heads = rows.share(op.getHeads()), D = op.getHeadDim(), P = heads * D; // of this rank
  Value x = o.full(op.getX());
  Value qkv = convolved(o, op, x);
  Value decay = logDecay(o, op, x);
  Value beta = o.map("self_attn.b_proj", "sigmoid", {o.linear(x, o.symbol(w, "b_proj"), o.f32(), rows)}, o.f32(),
                     [](Scalars &s, ValueRange in) { return s.sigmoid(in[0]); });
  Value state = o.cache(attn::CacheKind::kda, {heads, D, D}, o.f32());
  Value q = o.columns(qkv, 0, P), k = o.columns(qkv, P, 2 * P), v = o.columns(qkv, 2 * P, 3 * P);
  Value out = attn::KDAOp::create(o.b, o.at("self_attn.kda"), o.rowsOf(qkv, P, o.activation), q, k, v, decay, beta, state,
                                  o.batch, static_cast<uint64_t>(heads), static_cast<uint64_t>(o.bucket.isDecode() ? 1 : kChunk));
  FlatSymbolRefAttr full = o.symbol(w, "g_proj");
  Value gate = full ? o.linear(x, full, o.activation, rows)
                    : o.linear(o.linear(x, o.symbol(w, "g_a_proj"), o.activation), o.symbol(w, "g_b_proj"), o.activation, rows);
  FlatSymbolRefAttr gain = o.symbol(w, "o_norm");
  const double eps = op.getEps().convertToFloat();
  // Norm before gate, per head: o rsqrt(mean(o^2) + eps) gain sigmoid(gate), one rounding.
  Value y = o.row(
      OpsBuilder::label(gain), "gated_rms_norm", {out, o.weight(gain), gate}, o.activation,
      [&](Scalars &s, ValueRange in) { return s.mul(s.mul(s.mul(in[0], s.inverseRms(in[0], D, eps)), in[1]), s.sigmoid(in[2])); },
      heads);
  return o.sumRows(o.linear(y, o.symbol(w, "o_proj"), o.activation, columns));
}

Value convert(OpsBuilder &o, model::QueryLatentOp op) {
  OnRows rows(o, o.own);
  DictionaryAttr w = op.getWeights();
  Value latent = o.linear(o.get(op.getX()), o.symbol(w, "q_a_proj"), o.activation);
  return o.rmsNorm(latent, o.symbol(w, "q_a_layernorm"), op.getEps().convertToFloat());
}

// LayerNorm with bias over the columns: two depths of sums.
static Value layerNorm(OpsBuilder &o, Value x, FlatSymbolRefAttr gain, FlatSymbolRefAttr bias, double eps) {
  const int64_t n = OpsBuilder::columnsOf(x);
  return o.row(OpsBuilder::label(gain), "layer_norm", {x, o.weight(gain), o.weight(bias)}, o.activation,
               [&](Scalars &s, ValueRange in) {
                 Value centred = s.sub(in[0], s.mul(s.sum(in[0]), 1.0 / static_cast<double>(n)));
                 return s.add(s.mul(s.mul(centred, s.inverseRms(centred, n, eps)), in[1]), in[2]);
               });
}

Value convert(OpsBuilder &o, model::DSAOp op) {
  DictionaryAttr w = op.getWeights();
  OnRows rows(o, o.own);
  Value x = o.get(op.getX());
  Value q = o.linear(o.get(op.getQa()), o.symbol(w, "wq_b"), o.activation);
  Value key = layerNorm(o, o.linear(x, o.symbol(w, "wk"), o.activation), o.symbol(w, "k_norm"), o.symbol(w, "k_norm_bias"),
                        op.getEps().convertToFloat());
  Value keys = o.pagedCache(attn::CacheKind::index, static_cast<int64_t>(op.getHeadDim()), 0);
  o.append("self_attn.indexer.keys", key, keys, 0);
  Value headWeights = o.linear(x, o.symbol(w, "weights_proj"), o.f32());
  return attn::IndexSelectOp::create(o.b, o.at("self_attn.indexer.select"), q, headWeights, keys, o.batch, op.getHeads(),
                                     op.getTopK());
}

// The latent row of each token, normed, and its shared key go to the cache. x: all rows, or those of this rank.
static Value appendLatent(OpsBuilder &o, model::MLAOp op, Value x) {
  DictionaryAttr w = op.getWeights();
  const int64_t rank = op.getKvRank(), width = rank + static_cast<int64_t>(op.getRope());
  Value both = o.linear(x, o.symbol(w, "kv_a_proj_with_mqa"), o.activation);
  if (o.onOwnRows())
    both = o.allGather(both, coll::Axis::tp); // before the norm: one collective for latent row and key
  OnRows all(o, o.all);
  Value latent = o.rmsNorm(o.columns(both, 0, rank), o.symbol(w, "kv_a_layernorm"), op.getEps().convertToFloat());
  Value cache = o.pagedCache(attn::CacheKind::latent, width, rank);
  o.append("self_attn.latent", latent, cache, 0);
  o.append("self_attn.shared_key", o.columns(both, rank, width), cache, rank);
  return cache;
}

// Absorbed form: kv_b's key rows of a head carry its queries into latent space, its value rows carry the sums back. A rank has
// all rows with its heads, or its rows with all heads: then nothing has to be added up, and only what goes to the caches is
// gathered.
Value convert(OpsBuilder &o, model::MLAOp op) {
  DictionaryAttr w = op.getWeights();
  const bool byRows = o.bucket.byQueryRows;
  OnRows mine(o, byRows ? o.own : o.all);
  auto input = [&](Value old) { return byRows ? o.get(old) : o.full(old); };
  Cut rows = o.headRows(op.getHeads()), columns = o.headColumns(op.getHeads());
  if (byRows)
    rows = columns = {.besides = true};
  const int64_t heads = rows.share(op.getHeads()); // of this rank
  const int64_t nope = op.getNope(), value = op.getValue(), rank = op.getKvRank();
  Value x = input(op.getX());
  FlatSymbolRefAttr lowRank = o.symbol(w, "q_b_proj");
  Value q =
      lowRank ? o.linear(input(op.getQa()), lowRank, o.activation, rows) : o.linear(x, o.symbol(w, "q_proj"), o.activation, rows);
  Value cache = appendLatent(o, op, x);
  Value kv = o.weight(o.symbol(w, "kv_b_proj"), {}, rows);
  auto perHead = [&](StringRef label, Value in, int64_t begin, int64_t count, int64_t out, Type element,
                     bool transposed) -> Value {
    return nn::HeadLinearOp::create(o.b, o.at(label), o.rowsOf(in, heads * out, element), in, kv, o.live,
                                    static_cast<uint64_t>(heads), static_cast<uint64_t>(begin), static_cast<uint64_t>(count),
                                    transposed);
  };
  Value latentQuery = perHead("self_attn.kv_b_proj.keys", q, 0, nope, rank, o.f32(), true);
  const float scale = 1 / std::sqrt(static_cast<float>(nope + static_cast<int64_t>(op.getRope())));
  Value selected = op.getSelected() ? input(op.getSelected()) : Value();
  Value sums =
      attn::AttendOp::create(o.b, o.at("self_attn.attend"), o.rowsOf(q, heads * rank, o.f32()), Type(), latentQuery, q, cache,
                             o.batch, selected, static_cast<uint64_t>(heads), static_cast<uint64_t>(nope), APFloat(scale))
          .getResult();
  Value y = perHead("self_attn.kv_b_proj.values", sums, nope, value, value, o.activation, false);
  if (FlatSymbolRefAttr gate = o.symbol(w, "g_proj"))
    y = o.map("self_attn.gate", "sigmoid_gate", {o.linear(x, gate, o.activation, rows), y}, o.activation,
              [](Scalars &s, ValueRange in) { return s.mul(s.sigmoid(in[0]), in[1]); });
  y = o.linear(y, o.symbol(w, "o_proj"), o.activation, columns);
  return byRows ? y : o.sumRows(y);
}

} // namespace k31
