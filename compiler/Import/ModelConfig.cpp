#include "compiler/Import/ModelConfig.h"
#include "compiler/Import/ConfigReader.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include <algorithm>

using llvm::StringRef;
using llvm::Twine;
using Json = nlohmann::json;

namespace k31::importer {

// Bounds that keep every product of sizes inside 64 bits; the largest known model stays far below each.
constexpr int64_t kMaxLayers = 1024, kMaxWidth = 1 << 18, kMaxHeads = 4096, kMaxHeadDim = 4096, kMaxVocab = 1 << 24,
                  kMaxExperts = 8192;

StringRef familyName(Family family) {
  switch (family) {
  case Family::kimi_k3:
    return "kimi-k3";
  case Family::kimi_k31:
    return "kimi-k3.1";
  case Family::kimi_linear:
    return "kimi-linear";
  }
  return "";
}

namespace {

// "4, 8, 9" of layers counted from 0, as the file counts them.
std::string listed(const std::vector<int64_t> &layers) {
  std::string out;
  for (size_t i = 0; i < layers.size() && i < 12; ++i)
    out += (i ? ", " : "") + std::to_string(layers[i] + 1);
  return layers.size() > 12 ? out + ", ..." : out;
}

// A 1-based layer list as flags; a layer named twice is a fault.
std::vector<bool> layerFlags(ConfigReader &reader, StringRef key, int64_t layers) {
  std::vector<bool> flags(layers);
  for (int64_t layer : reader.integers(key, 1, layers)) {
    if (flags[layer - 1])
      reader.fault(key, "names layer " + Twine(layer) + " twice");
    flags[layer - 1] = true;
  }
  return flags;
}

std::vector<int64_t> where(const std::vector<bool> &flags, bool value) {
  std::vector<int64_t> out;
  for (size_t l = 0; l < flags.size(); ++l)
    if (flags[l] == value)
      out.push_back(l);
  return out;
}

class Parser {
public:
  Parser(const Json &root, Reporter &reporter)
      : reporter(reporter), nested(root.contains("text_config") && root["text_config"].is_object()), top(root, "", reporter),
        text(nested ? root["text_config"] : root, nested ? "text_config." : "", reporter) {}

  ModelConfig parse() {
    readFamily();
    readSizes();
    readLinearAttention();
    readMLA();
    readDSA();
    readActivation();
    readFeedForward();
    readQuantization(text);
    if (nested) {
      readQuantization(top);
      top.expect("tie_word_embeddings", false);
      top.reportUnread();
    }
    text.reportUnread();
    return config;
  }

private:
  void readFamily() {
    if (nested)
      (void)top.child("text_config");
    struct Known {
      StringRef architecture, modelType;
      Family family;
    };
    static constexpr Known known[] = {{"KimiK31ForConditionalGeneration", "kimi_k31", Family::kimi_k31},
                                      {"KimiK3ForConditionalGeneration", "kimi_k3", Family::kimi_k3},
                                      {"KimiLinearForCausalLM", "kimi_linear", Family::kimi_linear}};
    const Json *names = top.array("architectures");
    std::string type =
        top.text("model_type", {"kimi_k31", "kimi_k3", "kimi_linear"}, names ? std::optional<std::string>("") : std::nullopt);
    std::string name = names && names->size() == 1 && (*names)[0].is_string() ? (*names)[0].get<std::string>() : "";
    const Known *found =
        llvm::find_if(known, [&](const Known &k) { return names ? k.architecture == name : k.modelType == type; });
    if (found == std::end(known))
      return top.unsupported("architectures",
                             "one of KimiK31ForConditionalGeneration, KimiK3ForConditionalGeneration, KimiLinearForCausalLM");
    if (!type.empty() && found->modelType != type)
      return top.unsupported("model_type", "\"" + found->modelType + "\" with architectures " + found->architecture);
    config.family = found->family;
    // The text level of K3 is a KimiLinear configuration; attention residuals tell the two apart.
    if (config.family == Family::kimi_linear && text.has("attn_res_block_size"))
      config.family = Family::kimi_k3;
    if (config.family == Family::kimi_k3 && text.has("dsa_config"))
      config.family = Family::kimi_k31;
    (void)text.has("architectures"); // read above, or the text level's own, which says less
    if (nested)
      text.text("model_type", {"kimi_linear"}, "kimi_linear");
    else
      (void)text.has("model_type");
  }

  void readSizes() {
    config.layers = text.integer("num_hidden_layers", 1, kMaxLayers);
    config.hidden = text.integer("hidden_size", 1, kMaxWidth);
    config.vocab = text.integer("vocab_size", 1, kMaxVocab);
    config.eps = text.number("rms_norm_eps", 0, 1);
    config.eos = (nested && top.has("eos_token_id") ? top : text).integers("eos_token_id", 0, config.vocab - 1);
    (void)text.has("eos_token_id"); // the file's own takes precedence over the text level's
    text.expect("tie_word_embeddings", false);
    text.expect("num_nextn_predict_layers", 0);
    for (StringRef key : {"attention_bias", "mlp_bias", "use_bias"})
      text.expect(key, false);
    text.expect("sliding_window", nullptr);
    if (config.family == Family::kimi_linear)
      text.expect("attn_res_block_size", nullptr);
    else
      config.residualBlock = text.integer("attn_res_block_size", 1, kMaxLayers);
  }

  void readLinearAttention() {
    config.full.assign(config.layers, false);
    const Json *object = text.child("linear_attn_config", /*required=*/true);
    if (!object)
      return;
    ConfigReader reader(*object, (nested ? "text_config." : "") + std::string("linear_attn_config."), reporter);
    config.kda.heads = reader.integer("num_heads", 1, kMaxHeads);
    config.kda.headDim = reader.integer("head_dim", 1, kMaxHeadDim);
    config.kda.taps = reader.integer("short_conv_kernel_size", 2, 16);
    if (reader.has("gate_lower_bound")) {
      double bound = reader.number("gate_lower_bound", -5, 0);
      if (bound == 0)
        reader.unsupported("gate_lower_bound", "numbers from -5 up to, not including, 0");
      config.kda.gateBound = bound;
    }
    config.kda.fullRankGate = reader.boolean("use_full_rank_gate", false);
    config.full = layerFlags(reader, "full_attn_layers", config.layers);
    std::vector<bool> linear = layerFlags(reader, "kda_layers", config.layers);
    std::vector<int64_t> neither, both;
    for (int64_t l = 0; l < config.layers; ++l)
      if (config.full[l] == linear[l])
        (linear[l] ? both : neither).push_back(l);
    if (!both.empty())
      reader.fault("kda_layers", "and full_attn_layers both name layers " + listed(both) + "; each layer belongs to one list");
    if (!neither.empty())
      reader.fault("kda_layers", "and full_attn_layers leave out layers " + listed(neither) + "; each layer belongs to one list");
    reader.reportUnread();
  }

  void readMLA() {
    ModelConfig::MLA &mla = config.mla;
    mla.heads = text.integer("num_attention_heads", 1, kMaxHeads);
    text.expect("num_key_value_heads", mla.heads);
    mla.qRank = text.integer("q_lora_rank", 1, kMaxWidth, 0);
    mla.kvRank = text.integer("kv_lora_rank", 1, kMaxWidth);
    mla.nope = text.integer("qk_nope_head_dim", 1, kMaxHeadDim);
    mla.rope = text.integer("qk_rope_head_dim", 1, kMaxHeadDim);
    mla.value = text.integer("v_head_dim", 1, kMaxHeadDim);
    text.expect("mla_use_nope", true, /*required=*/true);
    mla.gated = text.boolean("mla_use_output_gate", false);
  }

  // The block's key names are not settled in public: both spellings are read.
  int64_t eitherOf(ConfigReader &reader, StringRef key, StringRef other, int64_t high) {
    bool first = reader.has(key), second = reader.has(other);
    int64_t value = reader.integer(first || !second ? key : other, 1, high);
    if (first && second && reader.integer(other, 1, high) != value)
      reader.fault(other, "differs from " + key + ", which means the same");
    return value;
  }

  void readDSA() {
    const Json *object = text.child("dsa_config", /*required=*/config.family == Family::kimi_k31);
    if (!object)
      return;
    ConfigReader reader(*object, (nested ? "text_config." : "") + std::string("dsa_config."), reporter);
    ModelConfig::DSA dsa;
    dsa.heads = eitherOf(reader, "num_heads", "index_n_heads", kMaxHeads);
    dsa.headDim = eitherOf(reader, "head_dim", "index_head_dim", kMaxHeadDim);
    dsa.topK = eitherOf(reader, "top_k", "index_topk", 1 << 20);
    dsa.eps = reader.number("layer_norm_eps", 0, 1, config.eps);
    dsa.layer = reader.has("dsa_layers") ? layerFlags(reader, "dsa_layers", config.layers) : config.full;
    std::vector<int64_t> wrong;
    for (int64_t l : where(dsa.layer, true))
      if (!config.full[l])
        wrong.push_back(l);
    if (!wrong.empty())
      reader.fault("dsa_layers",
                   "names layers " + listed(wrong) + ", which are not in full_attn_layers; only full attention has an indexer");
    for (StringRef key : {"qk_rope_head_dim", "rope_head_dim", "index_rope_head_dim"})
      reader.expect(key, 0);
    for (StringRef key : {"indexer_types", "index_kpool", "kpool"})
      reader.expect(key, nullptr);
    if (!config.mla.qRank)
      text.unsupported("q_lora_rank", "an integer when dsa_config is set: the indexer reads the query latent");
    reader.reportUnread();
    config.dsa = std::move(dsa);
  }

  void readActivation() {
    config.activation.name = text.text("hidden_act", {"silu", "situ"});
    bool situ = config.activation.name == "situ";
    if (situ)
      config.activation.beta = text.number("activation_situ_beta", 1e-3, 1e6);
    if (text.has("activation_situ_linear_beta") && situ)
      config.activation.linearBeta = text.number("activation_situ_linear_beta", 1e-3, 1e6);
    (void)text.has("activation_situ_beta"); // no effect on silu
  }

  void readFeedForward() {
    ModelConfig::MoE &moe = config.moe;
    config.denseWidth = text.integer("intermediate_size", 1, kMaxWidth);
    config.firstMoe = text.integer("first_k_dense_replace", 0, config.layers, 0);
    config.moeEvery = text.integer("moe_layer_freq", 1, kMaxLayers, 1);
    moe.experts = text.integer("num_experts", 1, kMaxExperts);
    moe.topK = text.integer("num_experts_per_token", 1, std::min<int64_t>(moe.experts, 256));
    moe.shared = text.integer("num_shared_experts", 1, 64);
    moe.width = text.integer("moe_intermediate_size", 1, kMaxWidth);
    moe.latent = text.integer("routed_expert_hidden_size", 1, kMaxWidth, 0);
    moe.latentNorm = text.boolean("latent_moe_use_norm", false);
    if (moe.latentNorm && !moe.latent)
      text.unsupported("routed_expert_hidden_size", "an integer when latent_moe_use_norm is true");
    moe.renormalize = text.boolean("moe_renormalize", true);
    moe.scale = text.number("routed_scaling_factor", 1e-6, 1e6, 1);
    text.text("moe_router_activation_func", {"sigmoid"}, "sigmoid");
    text.text("topk_method", {"noaux_tc"}, "noaux_tc");
    text.integer("num_expert_group", 1, 1, 1);
    text.integer("topk_group", 1, 1, 1);
  }

  void readQuantization(ConfigReader &level) {
    const Json *object = level.child("quantization_config");
    if (!object)
      return;
    std::string path = (&level == &text && nested ? "text_config." : "") + std::string("quantization_config.");
    ConfigReader reader(*object, path, reporter);
    reader.text("format", {"mxfp4-pack-quantized"});
    reader.text("quant_method", {"compressed-tensors"}, "compressed-tensors");
    reader.text("quantization_status", {"compressed"}, "compressed");
    reader.expect("kv_cache_scheme", nullptr);
    reader.expect("sparsity_config", nullptr);
    // What is packed shows in the tensors' names: the released files contradict these lists.
    for (StringRef key : {"ignore", "global_compression_ratio", "version"})
      (void)reader.has(key);
    const Json *groups = reader.child("config_groups");
    static const Json none = Json::object();
    for (const auto &group : (groups ? *groups : none).items())
      if (group.value().is_object())
        readGroup(group.value(), path + "config_groups." + group.key() + ".");
    reader.reportUnread();
    config.moe.mayBeQuantized = true;
  }

  void readGroup(const Json &object, const std::string &path) {
    ConfigReader group(object, path, reporter);
    group.text("format", {"mxfp4-pack-quantized"}, "mxfp4-pack-quantized");
    group.expect("input_activations", nullptr);
    group.expect("output_activations", nullptr);
    (void)group.has("targets"); // as above: names decide
    if (const Json *weights = group.child("weights")) {
      ConfigReader reader(*weights, path + "weights.", reporter);
      reader.expect("num_bits", 4, true);
      reader.text("type", {"float"});
      reader.text("strategy", {"group"});
      reader.expect("group_size", 32, true);
      reader.text("scale_dtype", {"torch.uint8"}, "torch.uint8");
      reader.expect("symmetric", true);
      reader.expect("dynamic", false);
      for (StringRef key : {"actorder", "block_structure", "zp_dtype"})
        reader.expect(key, nullptr);
      for (StringRef key : {"observer", "observer_kwargs"}) // how the scales were found, not what they are
        (void)reader.has(key);
      reader.reportUnread();
    }
    group.reportUnread();
  }

  Reporter &reporter;
  bool nested;
  ConfigReader top, text;
  ModelConfig config;
};

} // namespace

llvm::FailureOr<ModelConfig> readModelConfig(mlir::MLIRContext &context, StringRef folder, std::optional<double> mlaEps) {
  std::string path = folder.str() + "/config.json";
  auto bytes = read_text(path, 16 << 20);
  if (bytes)
    return parseModelConfig(context, *bytes, path, mlaEps);
  const bool absent = bytes.error().code == Code::not_found;
  Reporter(context).error("config.json", absent ? quote(path, 4096) +
                                                      " does not exist; give the folder of a checkpoint, with config.json and "
                                                      "safetensors files"
                                                : bytes.error().message);
  return llvm::failure();
}

// Whether lists and objects stand in each other deeper than any config's. The reader of JSON copes, but what walks the values
// calls itself once a level.
static bool nestsTooDeep(StringRef json) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool inText = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inText) {
      i += c == '\\';
      inText = c != '"';
    } else if (c == '"') {
      inText = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest)
        return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

llvm::FailureOr<ModelConfig> parseModelConfig(mlir::MLIRContext &context, StringRef json, StringRef path,
                                              std::optional<double> mlaEps) {
  Reporter reporter(context);
  if (nestsTooDeep(json)) {
    reporter.error("config.json", path + " nests lists and objects more than 64 deep; fetch the checkpoint's config.json again");
    return llvm::failure();
  }
  Json root = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    reporter.error("config.json", path + " is not a JSON object; fetch the checkpoint's config.json again");
    return llvm::failure();
  }
  ModelConfig config = Parser(root, reporter).parse();
  if (mlaEps)
    config.mlaEps = *mlaEps;
  if (!reporter.finish("config.json"))
    return llvm::failure();
  return config;
}

} // namespace k31::importer
