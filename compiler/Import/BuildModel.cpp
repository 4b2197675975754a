#include "compiler/Import/BuildModel.h"
#include "dialects/K31/K31.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace k31::model;

namespace k31::importer {

static Type elementType(Builder &b, const MatchedTensor &tensor) {
  switch (tensor.spec.kind) {
  case TensorKind::packed:
    return Float4E2M1FNType::get(b.getContext());
  case TensorKind::scale:
    return Float8E8M0FNUType::get(b.getContext());
  default:
    return tensor.dtype == "F32" ? Type(b.getF32Type()) : Type(b.getBF16Type());
  }
}

ModelBuilder::ModelBuilder(ModuleOp module, const ModelConfig &config, const Match &match, Type activation, LayerRange range)
    : config(config), range(range), module(module), match(match), b(module.getBodyRegion()),
      rows(RankedTensorType::get({ShapedType::kDynamic, config.hidden}, activation)) {
  b.setInsertionPointToEnd(module.getBody());
  for (const MatchedTensor &t : match.tensors) {
    SmallVector<int64_t> shape(t.spec.shape.begin(), t.spec.shape.end());
    if (t.spec.experts)
      shape.insert(shape.begin(), t.spec.experts);
    nn::TensorOp::create(b, at(t.spec.symbol), t.spec.symbol, match.prefix + t.spec.pattern, t.spec.members, t.files, t.offsets,
                         RankedTensorType::get(shape, elementType(b, t)));
  }
}

DictionaryAttr ModelBuilder::weights(Weights names) {
  SmallVector<NamedAttribute> attrs;
  for (auto &[name, symbol] : names)
    attrs.push_back(b.getNamedAttr(name, FlatSymbolRefAttr::get(b.getContext(), symbol)));
  return b.getDictionaryAttr(attrs);
}

Value ModelBuilder::rmsNorm(Value x, Value index, const std::string &gain) {
  return RMSNormOp::create(b, at(gain), rows, x, index, weights({{"gain", gain}}), f32(config.eps));
}

Value ModelBuilder::attnRes(ValueRange sources, Value index, const std::string &stem) {
  return AttnResOp::create(b, at(stem), rows, sources, index, weights({{"norm", stem + "_norm"}, {"proj", stem + "_proj"}}),
                           f32(config.eps));
}

Value ModelBuilder::add(Value x, Value y) { return AddOp::create(b, at("residual"), rows, x, y); }

Value ModelBuilder::attention(Value x, Value index, int64_t layer) {
  return config.full[layer] ? mla(x, index, layer) : kda(x, index);
}

Value ModelBuilder::kda(Value x, Value index) {
  SmallVector<std::pair<StringRef, std::string>> names;
  for (StringRef name : {"q_proj", "k_proj", "v_proj", "q_conv1d", "k_conv1d", "v_conv1d", "f_a_proj", "f_b_proj", "b_proj",
                         "A_log", "dt_bias", "o_norm", "o_proj"})
    names.emplace_back(name, attentionSymbol(name, false));
  if (config.kda.fullRankGate)
    names.emplace_back("g_proj", attentionSymbol("g_proj", false));
  else
    for (StringRef name : {"g_a_proj", "g_b_proj"})
      names.emplace_back(name, attentionSymbol(name, false));
  FloatAttr bound = config.kda.gateBound ? f32(*config.kda.gateBound) : FloatAttr();
  return KDAOp::create(b, at("self_attn"), rows, x, index, weights(names), b.getI64IntegerAttr(config.kda.heads),
                       b.getI64IntegerAttr(config.kda.headDim), b.getI64IntegerAttr(config.kda.taps), bound, f32(config.eps));
}

Value ModelBuilder::mla(Value x, Value index, int64_t layer) {
  const ModelConfig::MLA &m = config.mla;
  SmallVector<std::pair<StringRef, std::string>> names = {{"kv_a_proj_with_mqa", "self_attn.kv_a_proj_with_mqa"},
                                                          {"kv_a_layernorm", "self_attn.kv_a_layernorm"},
                                                          {"kv_b_proj", "self_attn.kv_b_proj"},
                                                          {"o_proj", attentionSymbol("o_proj", true)}};
  if (m.gated)
    names.emplace_back("g_proj", attentionSymbol("g_proj", true));
  Value qa, selected;
  if (m.qRank) {
    names.emplace_back("q_b_proj", "self_attn.q_b_proj");
    qa = QueryLatentOp::create(b, at("self_attn.q_a_proj"), rows.clone({ShapedType::kDynamic, m.qRank}), x, index,
                               weights({{"q_a_proj", "self_attn.q_a_proj"}, {"q_a_layernorm", "self_attn.q_a_layernorm"}}),
                               f32(config.mlaEps));
  } else {
    names.emplace_back("q_proj", attentionSymbol("q_proj", true));
  }
  if (config.isSparse(layer)) {
    const ModelConfig::DSA &d = *config.dsa;
    const std::string I = "self_attn.indexer.";
    auto positions = RankedTensorType::get({ShapedType::kDynamic, d.topK}, b.getI32Type());
    selected =
        DSAOp::create(b, at("self_attn.indexer"), positions, x, qa, index,
                      weights({{"wq_b", I + "wq_b"},
                               {"wk", I + "wk"},
                               {"k_norm", I + "k_norm"},
                               {"k_norm_bias", I + "k_norm.bias"},
                               {"weights_proj", I + "weights_proj"}}),
                      b.getI64IntegerAttr(d.heads), b.getI64IntegerAttr(d.headDim), b.getI64IntegerAttr(d.topK), f32(d.eps));
  }
  auto i64 = [&](int64_t v) { return b.getI64IntegerAttr(v); };
  return MLAOp::create(b, at("self_attn"), rows, x, qa, selected, index, weights(names), i64(m.heads), i64(m.kvRank), i64(m.nope),
                       i64(m.rope), i64(m.value), f32(config.mlaEps));
}

Attribute ModelBuilder::activationAttr() {
  const ModelConfig::Activation &a = config.activation;
  return ActivationAttr::get(b.getContext(), a.name, a.beta ? f32(*a.beta) : FloatAttr(),
                             a.linearBeta ? f32(*a.linearBeta) : FloatAttr());
}

Value ModelBuilder::feedForward(Value x, Value index, int64_t layer) {
  if (!config.isDense(layer))
    return moe(x, index, layer);
  return MLPOp::create(b, at("mlp"), rows, x, index,
                       weights({{"gate_proj", "mlp.gate_proj"}, {"up_proj", "mlp.up_proj"}, {"down_proj", "mlp.down_proj"}}),
                       cast<ActivationAttr>(activationAttr()));
}

Value ModelBuilder::moe(Value x, Value index, int64_t layer) {
  const ModelConfig::MoE &e = config.moe;
  const std::string M = "block_sparse_moe.", S = M + "shared_experts.";
  SmallVector<std::pair<StringRef, std::string>> names = {{"gate", M + "gate"},
                                                          {"e_score_correction_bias", M + "gate.e_score_correction_bias"},
                                                          {"shared.gate_proj", S + "gate_proj"},
                                                          {"shared.up_proj", S + "up_proj"},
                                                          {"shared.down_proj", S + "down_proj"}};
  if (e.latent)
    for (StringRef name : {"routed_expert_down_proj", "routed_expert_up_proj"})
      names.emplace_back(name, M + name.str());
  if (e.latentNorm)
    names.emplace_back("routed_expert_norm", M + "routed_expert_norm");
  SmallVector<std::string> expertNames; // own the keys
  for (std::string w : {"w1", "w2", "w3"}) {
    if (!match.packed[layer]) {
      expertNames.push_back(w);
      continue;
    }
    expertNames.push_back(w + "_packed");
    expertNames.push_back(w + "_scale");
  }
  for (const std::string &name : expertNames)
    names.emplace_back(name, M + "experts." + name.substr(0, 2) + (name.size() > 2 ? ".weight" + name.substr(2) : ""));
  return LatentMoEOp::create(b, at("block_sparse_moe"), rows, x, index, weights(names), cast<ActivationAttr>(activationAttr()),
                             b.getI64IntegerAttr(e.experts), b.getI64IntegerAttr(e.topK), b.getI64IntegerAttr(e.latent),
                             b.getBoolAttr(e.renormalize), f32(e.scale), f32(config.eps));
}

std::string ModelBuilder::layerKind(int64_t layer) const {
  std::string attention = !config.full[layer] ? "kda" : config.isSparse(layer) ? "dsa" : "mla";
  if (config.isDense(layer))
    return attention + "_dense";
  // Only a mixed checkpoint has both forms; its bodies read different weights.
  bool mixed = false;
  for (int64_t l = 0; l < config.layers; ++l)
    mixed |= !config.isDense(l) && match.packed[l] != match.packed[layer];
  return attention + "_moe" + (mixed && match.packed[layer] ? "_mxfp4" : "");
}

func::FuncOp ModelBuilder::body(const std::string &name, size_t sources,
                                llvm::function_ref<Value(Value, ValueRange, Value)> fill) {
  func::FuncOp &f = bodies[name];
  if (f)
    return f;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> inputs(sources + 2, rows);
  inputs.front() = b.getIndexType();
  f = func::FuncOp::create(b, at(name), "body." + name, b.getFunctionType(inputs, {rows}));
  f.setPrivate();
  b.setInsertionPointToStart(f.addEntryBlock());
  Value result = fill(f.getArgument(0), f.getArguments().slice(1, sources), f.getArguments().back());
  func::ReturnOp::create(b, f.getLoc(), result);
  return f;
}

Value ModelBuilder::call(func::FuncOp body, int64_t layer, ValueRange sources, Value prefix) {
  Location loc = at("layers." + std::to_string(layer));
  SmallVector<Value> operands = {arith::ConstantIndexOp::create(b, loc, layer)};
  operands.append(sources.begin(), sources.end());
  operands.push_back(prefix);
  return func::CallOp::create(b, loc, body, operands).getResult(0);
}

void ModelBuilder::text(size_t bank, llvm::function_ref<void(Stream &)> fill, llvm::function_ref<Value(const Stream &)> finish) {
  auto ids = RankedTensorType::get({ShapedType::kDynamic}, b.getI32Type());
  auto logits = RankedTensorType::get({ShapedType::kDynamic, config.vocab}, b.getF32Type());
  const bool first = range.begin == 0, last = range.end == config.layers;
  SmallVector<Type> inputs(first ? 1 : 1 + bank, first ? ids : rows);
  if (last)
    inputs.push_back(ids);
  b.setInsertionPointToEnd(module.getBody());
  auto f = func::FuncOp::create(b, at("text"), "text", b.getFunctionType(inputs, {}));
  b.setInsertionPointToStart(f.addEntryBlock());
  Stream stream{f.getArgument(0), {}};
  if (first)
    stream.prefix =
        EmbedOp::create(b, at("embed_tokens"), rows, f.getArgument(0), weights({{"embed_tokens", "model.embed_tokens"}}));
  else
    stream.bank.assign(f.getArguments().begin() + 1, f.getArguments().begin() + 1 + bank);
  fill(stream);
  SmallVector<Value> results{stream.prefix};
  if (last)
    results[0] = HeadOp::create(b, at("lm_head"), logits, rmsNorm(finish(stream), Value(), "model.norm"), f.getArguments().back(),
                                weights({{"lm_head", "lm_head"}}));
  else
    results.append(stream.bank);
  func::ReturnOp::create(b, f.getLoc(), results);
  f.setFunctionType(b.getFunctionType(inputs, ValueRange(results).getTypes()));
}

void buildModel(ModuleOp module, const ModelConfig &config, const Match &match, Type activation, LayerRange range) {
  ModelBuilder builder(module, config, match, activation, range);
  if (config.family == Family::kimi_linear)
    buildKimiLinear(builder);
  else
    buildKimiK3(builder);
}

} // namespace k31::importer
