#include "compiler/Import/TensorTable.h"

using llvm::StringRef;
using Shape = std::vector<int64_t>;

namespace k31::importer {

std::string attentionSymbol(StringRef name, bool fullAttention) {
  return "self_attn." + name.str() + (fullAttention ? ".mla" : "");
}

namespace {

class Table {
public:
  Table(const ModelConfig &config, const std::vector<bool> &packed) : c(config), packed(packed) {}

  std::vector<TensorSpec> build() {
    const int64_t H = c.hidden;
    add("model.embed_tokens", {c.vocab, H});
    add("lm_head", {c.vocab, H});
    add("model.norm", {H});
    addLayers(select([](int64_t) { return true; }), {{"input_layernorm", {H}}, {"post_attention_layernorm", {H}}});
    if (c.residualBlock)
      addResiduals();
    addKDA(select([&](int64_t l) { return !c.full[l]; }));
    addMLA(select([&](int64_t l) { return bool(c.full[l]); }));
    addIndexer(select([&](int64_t l) { return c.isSparse(l); }));
    addLayers(select([&](int64_t l) { return c.isDense(l); }),
              {{"mlp.gate_proj", {c.denseWidth, H}}, {"mlp.up_proj", {c.denseWidth, H}}, {"mlp.down_proj", {H, c.denseWidth}}});
    addMoE(select([&](int64_t l) { return !c.isDense(l); }));
    addExperts(select([&](int64_t l) { return !c.isDense(l) && this->packed[l]; }), true);
    addExperts(select([&](int64_t l) { return !c.isDense(l) && !this->packed[l]; }), false);
    return std::move(specs);
  }

private:
  struct Item {
    std::string name;
    Shape shape;
  };

  template <class F> Shape select(F &&wanted) const {
    Shape layers;
    for (int64_t l = 0; l < c.layers; ++l)
      if (wanted(l))
        layers.push_back(l);
    return layers;
  }

  // A weight of the whole model: NAME.weight.
  void add(const std::string &name, Shape shape) { specs.push_back({name, name + ".weight", {}, 0, shape, shape}); }

  // One tensor a layer; `suffix` follows the name in the file.
  TensorSpec &addLayer(const Shape &layers, const std::string &name, Shape shape, const std::string &suffix = ".weight") {
    return specs.emplace_back(TensorSpec{name, "model.layers.{}." + name + suffix, layers, 0, shape, shape});
  }

  void addLayers(const Shape &layers, std::initializer_list<Item> items) {
    if (!layers.empty())
      for (const Item &item : items)
        addLayer(layers, item.name, item.shape);
  }

  // Queries of the residual mixes are [1, H] in the file.
  void addResiduals() {
    Shape all = select([](int64_t) { return true; });
    for (std::string name : {"self_attention_res", "mlp_res"}) {
      addLayer(all, name + "_norm", {c.hidden});
      addLayer(all, name + "_proj", {1, c.hidden}).shape = {c.hidden};
    }
    add("model.output_attn_res_norm", {c.hidden});
    add("model.output_attn_res_proj", {1, c.hidden});
    specs.back().shape = {c.hidden};
  }

  void addKDA(const Shape &layers) {
    if (layers.empty())
      return;
    const int64_t H = c.hidden, P = c.kda.width(), D = c.kda.headDim;
    for (std::string name : {"q", "k", "v"}) {
      addLayer(layers, "self_attn." + name + "_proj", {P, H});
      addLayer(layers, "self_attn." + name + "_conv1d", {P, 1, c.kda.taps}).shape = {P, c.kda.taps};
    }
    addLayers(layers, {{"self_attn.f_a_proj", {D, H}}, {"self_attn.f_b_proj", {P, D}}, {"self_attn.b_proj", {c.kda.heads, H}}});
    addLayer(layers, "self_attn.A_log", {c.kda.heads}, "").kind = TensorKind::decay;
    addLayer(layers, "self_attn.dt_bias", {P}, "");
    if (c.kda.fullRankGate)
      addLayer(layers, "self_attn.g_proj", {P, H});
    else
      addLayers(layers, {{"self_attn.g_a_proj", {D, H}}, {"self_attn.g_b_proj", {P, D}}});
    addLayers(layers, {{"self_attn.o_norm", {D}}, {"self_attn.o_proj", {H, P}}});
  }

  void addMLA(const Shape &layers) {
    if (layers.empty())
      return;
    const ModelConfig::MLA &m = c.mla;
    const int64_t H = c.hidden, Q = m.heads * (m.nope + m.rope), V = m.heads * m.value;
    if (m.qRank)
      addLayers(
          layers,
          {{"self_attn.q_a_proj", {m.qRank, H}}, {"self_attn.q_a_layernorm", {m.qRank}}, {"self_attn.q_b_proj", {Q, m.qRank}}});
    else
      addShared(layers, "q_proj", {Q, H});
    addLayers(layers, {{"self_attn.kv_a_proj_with_mqa", {m.kvRank + m.rope, H}},
                       {"self_attn.kv_a_layernorm", {m.kvRank}},
                       {"self_attn.kv_b_proj", {m.heads * (m.nope + m.value), m.kvRank}}});
    if (m.gated)
      addShared(layers, "g_proj", {V, H});
    addShared(layers, "o_proj", {H, V});
  }

  // KDA layers have a tensor of this name too, maybe of another shape.
  void addShared(const Shape &layers, StringRef name, Shape shape) {
    addLayer(layers, "self_attn." + name.str(), shape).symbol = attentionSymbol(name, true);
  }

  void addIndexer(const Shape &layers) {
    if (layers.empty())
      return;
    const ModelConfig::DSA &d = *c.dsa;
    addLayers(layers, {{"self_attn.indexer.wq_b", {d.heads * d.headDim, c.mla.qRank}},
                       {"self_attn.indexer.wk", {d.headDim, c.hidden}},
                       {"self_attn.indexer.weights_proj", {d.heads, c.hidden}},
                       {"self_attn.indexer.k_norm", {d.headDim}}});
    addLayer(layers, "self_attn.indexer.k_norm.bias", {d.headDim}, "");
  }

  void addMoE(const Shape &layers) {
    if (layers.empty())
      return;
    const int64_t H = c.hidden, E = c.moe.experts, Z = c.moe.latent, S = c.moe.width * c.moe.shared;
    const std::string M = "block_sparse_moe.";
    addLayer(layers, M + "gate", {E, H});
    addLayer(layers, M + "gate.e_score_correction_bias", {E}, "");
    if (Z)
      addLayers(layers, {{M + "routed_expert_down_proj", {Z, H}}, {M + "routed_expert_up_proj", {H, Z}}});
    if (c.moe.latentNorm)
      addLayer(layers, M + "routed_expert_norm", {Z});
    addLayers(layers, {{M + "shared_experts.gate_proj", {S, H}},
                       {M + "shared_experts.up_proj", {S, H}},
                       {M + "shared_experts.down_proj", {H, S}}});
  }

  void addExperts(const Shape &layers, bool quantized) {
    if (layers.empty())
      return;
    const int64_t W = c.moe.width, Z = c.moe.latent ? c.moe.latent : c.hidden;
    struct Matrix {
      std::string name;
      int64_t rows, columns;
    };
    for (const Matrix &m : {Matrix{"w1", W, Z}, Matrix{"w2", Z, W}, Matrix{"w3", W, Z}}) {
      auto put = [&](const std::string &symbolEnd, const std::string &suffix, Shape stored, Shape shape, TensorKind kind) {
        specs.push_back({"block_sparse_moe.experts." + m.name + symbolEnd,
                         "model.layers.{}.block_sparse_moe.experts.{}." + m.name + suffix, layers, c.moe.experts,
                         std::move(stored), std::move(shape), kind});
      };
      if (!quantized) {
        put("", ".weight", {m.rows, m.columns}, {m.rows, m.columns}, TensorKind::plain);
        continue;
      }
      put(".weight_packed", ".weight_packed", {m.rows, m.columns / 2}, {m.rows, m.columns}, TensorKind::packed);
      put(".weight_scale", ".weight_scale", {m.rows, m.columns / 32}, {m.rows, m.columns / 32}, TensorKind::scale);
    }
  }

  const ModelConfig &c;
  const std::vector<bool> &packed;
  std::vector<TensorSpec> specs;
};

} // namespace

std::vector<TensorSpec> tensorTable(const ModelConfig &config, const std::vector<bool> &packed) {
  return Table(config, packed).build();
}

} // namespace k31::importer
