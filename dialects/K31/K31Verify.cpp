// Level 1: the operands of each op, the names of its weights, and the shapes of the tensors behind them.
#include "dialects/K31/K31.h"
#include "dialects/NN/NN.h"
#include "dialects/Support/Verify.h"

using namespace mlir;
using namespace k31;
using namespace k31::model;

// Sizes that the op's attributes do not tell: any, and those that several of its weights must have alike.
static constexpr int64_t kAny = -1, kWidth = -2, kExpertWidth = -3;

namespace {
// A weight of an op: its key in the dictionary and the shape of one member.
struct WeightSpec {
  StringRef name;
  SmallVector<int64_t> shape;
  bool required = true;
  bool atLeast = false; // a vector that may be padded
};
using WeightSpecs = SmallVector<WeightSpec>;
} // namespace

static int64_t columns(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getRank() == 2 ? type.getDimSize(1) : 0;
}

static WeightSpecs specsOf(EmbedOp op) { return {{"embed_tokens", {kAny, columns(op.getResult())}}}; }
static WeightSpecs specsOf(RMSNormOp op) { return {{"gain", {columns(op.getX())}}}; }
static WeightSpecs specsOf(HeadOp op) { return {{"lm_head", {columns(op.getResult()), columns(op.getX())}}}; }

static WeightSpecs specsOf(AttnResOp op) {
  int64_t hidden = columns(op.getResult());
  return {{"norm", {hidden}}, {"proj", {hidden}}};
}

static WeightSpecs specsOf(KDAOp op) {
  int64_t hidden = columns(op.getX()), heads = op.getHeads(), dim = op.getHeadDim(), p = heads * dim, taps = op.getTaps();
  WeightSpecs specs = {{"q_proj", {p, hidden}},        {"k_proj", {p, hidden}}, {"v_proj", {p, hidden}},
                       {"q_conv1d", {p, taps}},        {"k_conv1d", {p, taps}}, {"v_conv1d", {p, taps}},
                       {"f_a_proj", {dim, hidden}},    {"f_b_proj", {p, dim}},  {"b_proj", {heads, hidden}},
                       {"A_log", {heads}, true, true}, {"dt_bias", {p}},        {"o_norm", {dim}},
                       {"o_proj", {hidden, p}}};
  if (op.getWeights().contains("g_a_proj") || op.getWeights().contains("g_b_proj"))
    specs.append({{"g_a_proj", {dim, hidden}}, {"g_b_proj", {p, dim}}});
  else
    specs.push_back({"g_proj", {p, hidden}});
  return specs;
}

static WeightSpecs specsOf(QueryLatentOp op) {
  int64_t rank = columns(op.getResult());
  return {{"q_a_proj", {rank, columns(op.getX())}}, {"q_a_layernorm", {rank}}};
}

static WeightSpecs specsOf(DSAOp op) {
  int64_t hidden = columns(op.getX()), heads = op.getHeads(), dim = op.getHeadDim();
  return {{"wq_b", {heads * dim, columns(op.getQa())}},
          {"wk", {dim, hidden}},
          {"k_norm", {dim}},
          {"k_norm_bias", {dim}},
          {"weights_proj", {heads, hidden}}};
}

static WeightSpecs specsOf(MLAOp op) {
  int64_t hidden = columns(op.getX()), heads = op.getHeads(), rank = op.getKvRank(), nope = op.getNope(), rope = op.getRope(),
          value = op.getValue();
  WeightSpecs specs = {{"kv_a_proj_with_mqa", {rank + rope, hidden}},
                       {"kv_a_layernorm", {rank}},
                       {"kv_b_proj", {heads * (nope + value), rank}},
                       {"o_proj", {hidden, heads * value}},
                       {"g_proj", {heads * value, hidden}, false}};
  if (op.getQa())
    specs.push_back({"q_b_proj", {heads * (nope + rope), columns(op.getQa())}});
  else
    specs.push_back({"q_proj", {heads * (nope + rope), hidden}});
  return specs;
}

static WeightSpecs specsOf(MLPOp op) {
  int64_t hidden = columns(op.getX());
  return {{"gate_proj", {kWidth, hidden}}, {"up_proj", {kWidth, hidden}}, {"down_proj", {hidden, kWidth}}};
}

static WeightSpecs specsOf(LatentMoEOp op) {
  int64_t hidden = columns(op.getX()), experts = op.getExperts(), latent = op.getLatent(), z = latent > 0 ? latent : hidden;
  WeightSpecs specs = {{"gate", {experts, hidden}},
                       {"e_score_correction_bias", {experts}},
                       {"shared.gate_proj", {kWidth, hidden}},
                       {"shared.up_proj", {kWidth, hidden}},
                       {"shared.down_proj", {hidden, kWidth}}};
  if (latent > 0)
    specs.append(
        {{"routed_expert_down_proj", {z, hidden}}, {"routed_expert_up_proj", {hidden, z}}, {"routed_expert_norm", {z}, false}});
  if (llvm::any_of(op.getWeights(), [](NamedAttribute w) { return w.getName().strref().ends_with("_packed"); }))
    specs.append({{"w1_packed", {experts, kExpertWidth, z}},
                  {"w1_scale", {experts, kExpertWidth, z / 32}},
                  {"w2_packed", {experts, z, kExpertWidth}},
                  {"w2_scale", {experts, z, kAny}},
                  {"w3_packed", {experts, kExpertWidth, z}},
                  {"w3_scale", {experts, kExpertWidth, z / 32}}});
  else
    specs.append({{"w1", {experts, kExpertWidth, z}}, {"w2", {experts, z, kExpertWidth}}, {"w3", {experts, kExpertWidth, z}}});
  return specs;
}

// All required keys, no key that the op does not know, and symbols as values.
template <typename Op> static LogicalResult verifyKeys(Op op) {
  WeightSpecs specs = specsOf(op);
  DictionaryAttr weights = op.getWeights();
  for (const WeightSpec &spec : specs)
    if (spec.required && !weights.contains(spec.name))
      return op.emitOpError() << "weights lack '" << spec.name << "'";
  for (NamedAttribute weight : weights) {
    if (llvm::none_of(specs, [&](const WeightSpec &spec) { return spec.name == weight.getName().strref(); })) {
      auto error = op.emitOpError() << "weights have the unknown key '" << weight.getName().strref() << "', expected ";
      llvm::interleaveComma(specs, error, [&](const WeightSpec &spec) { error << spec.name; });
      return error;
    }
    if (!isa<FlatSymbolRefAttr>(weight.getValue()))
      return op.emitOpError() << "weight '" << weight.getName().strref() << "' is " << weight.getValue()
                              << ", expected the symbol of an nn.tensor";
  }
  return success();
}

static SmallVector<int64_t> withoutUnits(ArrayRef<int64_t> shape) {
  return SmallVector<int64_t>(llvm::make_filter_range(shape, [](int64_t size) { return size != 1; }));
}

static bool isUnknown(int64_t size) { return size < 0; }

static bool fits(const WeightSpec &spec, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> found = withoutUnits(shape), expected = withoutUnits(spec.shape);
  if (spec.atLeast)
    return found.size() <= 1 && (found.empty() ? 1 : found[0]) >= spec.shape[0];
  if (found.size() != expected.size())
    return llvm::any_of(expected, isUnknown); // which may be 1
  return llvm::all_of(llvm::zip(found, expected),
                      [](auto pair) { return isUnknown(std::get<1>(pair)) || std::get<0>(pair) == std::get<1>(pair); });
}

template <typename Op> static LogicalResult verifyTensors(Op op, SymbolTableCollection &symbols) {
  struct Seen {
    int64_t size;
    StringRef weight;
  };
  llvm::SmallDenseMap<int64_t, Seen> widths; // of kWidth and kExpertWidth
  for (const WeightSpec &spec : specsOf(op)) {
    auto name = op.getWeights().template getAs<FlatSymbolRefAttr>(spec.name);
    if (!name)
      continue;
    auto tensor = symbols.lookupNearestSymbolFrom<nn::TensorOp>(op, name);
    if (!tensor)
      return op.emitOpError() << "weight '" << spec.name << "' is " << name << ", which is not an nn.tensor";
    ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
    if (!fits(spec, shape)) {
      auto shown = [](int64_t size) { return isUnknown(size) ? ShapedType::kDynamic : size; };
      return op.emitOpError() << "weight '" << spec.name << "' (" << name << ") has shape " << shapeText(shape) << ", expected "
                              << (spec.atLeast ? "at least " : "") << shapeText(llvm::map_to_vector(spec.shape, shown));
    }
    if (shape.size() != spec.shape.size())
      continue; // ones in the checkpoint's shape
    for (auto [size, unknown] : llvm::zip(shape, spec.shape)) {
      if (unknown != kWidth && unknown != kExpertWidth)
        continue;
      const Seen &first = widths.try_emplace(unknown, Seen{size, spec.name}).first->second;
      if (first.size != size)
        return op.emitOpError() << "weight '" << spec.name << "' (" << name << ") has a width of " << size << ", but '"
                                << first.weight << "' has one of " << first.size;
    }
  }
  return success();
}

#define K31_SYMBOL_USES(OP)                                                                                                      \
  LogicalResult OP::verifySymbolUses(SymbolTableCollection &symbols) { return verifyTensors(*this, symbols); }
K31_SYMBOL_USES(EmbedOp)
K31_SYMBOL_USES(RMSNormOp)
K31_SYMBOL_USES(AttnResOp)
K31_SYMBOL_USES(KDAOp)
K31_SYMBOL_USES(QueryLatentOp)
K31_SYMBOL_USES(DSAOp)
K31_SYMBOL_USES(MLAOp)
K31_SYMBOL_USES(MLPOp)
K31_SYMBOL_USES(LatentMoEOp)
K31_SYMBOL_USES(HeadOp)
#undef K31_SYMBOL_USES

// Rows [T, C]: C is fixed, T is usually dynamic.
static LogicalResult isRows(Operation *op, StringRef name, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 2 && !type.isDynamicDim(1))
    return success();
  return op->emitOpError() << name << " is " << type << ", expected [T, C] with a fixed number of columns";
}

static LogicalResult isIds(Operation *op, StringRef name, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 1 && type.getElementType().isInteger(32))
    return success();
  return op->emitOpError() << name << " is " << type << ", expected i32 [T]";
}

static LogicalResult isPositive(Operation *op, std::initializer_list<std::pair<StringRef, int64_t>> values) {
  for (auto &[name, value] : values)
    if (value < 1)
      return op->emitOpError() << "expected " << name << " of 1 or more, found " << value;
  return success();
}

// Positions that the indexer selects: i32 [T, top_k].
static LogicalResult isSelection(Operation *op, StringRef name, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 2 && !type.isDynamicDim(1) && type.getElementType().isInteger(32))
    return success();
  return op->emitOpError() << name << " is " << type << ", expected i32 [T, top_k]";
}

LogicalResult EmbedOp::verify() {
  return failure(failed(isIds(*this, "tokens", getTokens())) || failed(isRows(*this, "result", getResult())) ||
                 failed(verifyKeys(*this)));
}

LogicalResult RMSNormOp::verify() { return failure(failed(isRows(*this, "x", getX())) || failed(verifyKeys(*this))); }

LogicalResult AttnResOp::verify() {
  if (getSources().empty())
    return emitOpError() << "expected one source or more";
  for (Value source : getSources())
    if (source.getType() != getResult().getType())
      return emitOpError() << "a source is " << source.getType() << ", but the result is " << getResult().getType();
  return failure(failed(isRows(*this, "result", getResult())) || failed(verifyKeys(*this)));
}

LogicalResult KDAOp::verify() {
  return failure(failed(isRows(*this, "x", getX())) ||
                 failed(isPositive(*this, {{"heads", getHeads()}, {"head_dim", getHeadDim()}, {"taps", getTaps()}})) ||
                 failed(verifyKeys(*this)));
}

LogicalResult QueryLatentOp::verify() {
  return failure(failed(isRows(*this, "x", getX())) || failed(isRows(*this, "result", getResult())) || failed(verifyKeys(*this)));
}

LogicalResult DSAOp::verify() {
  if (failed(isRows(*this, "x", getX())) || failed(isRows(*this, "qa", getQa())) ||
      failed(isPositive(*this, {{"heads", getHeads()}, {"head_dim", getHeadDim()}, {"top_k", getTopK()}})) ||
      failed(isSelection(*this, "result", getResult())))
    return failure();
  if (columns(getResult()) != static_cast<int64_t>(getTopK()))
    return emitOpError() << "result has " << columns(getResult()) << " columns, expected top_k of " << getTopK();
  return verifyKeys(*this);
}

LogicalResult MLAOp::verify() {
  if (failed(isRows(*this, "x", getX())) || (getQa() && failed(isRows(*this, "query", getQa()))) ||
      (getSelected() && failed(isSelection(*this, "selected", getSelected()))) ||
      failed(isPositive(*this, {{"heads", getHeads()}, {"kv_rank", getKvRank()}, {"nope", getNope()}, {"value", getValue()}})))
    return failure();
  if (static_cast<int64_t>(getRope()) < 0)
    return emitOpError() << "expected rope of 0 or more, found " << static_cast<int64_t>(getRope());
  if (getResult().getType() != getX().getType())
    return emitOpError() << "result is " << getResult().getType() << ", but x is " << getX().getType();
  return verifyKeys(*this);
}

LogicalResult ActivationAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, FloatAttr beta,
                                     FloatAttr linearBeta) {
  if (name != "silu" && name != "situ")
    return emitError() << "expected the activation \"silu\" or \"situ\", found \"" << name << "\"";
  if (name == "silu" && (beta || linearBeta))
    return emitError() << "silu takes no beta and no linear_beta";
  if (name == "situ" && !beta)
    return emitError() << "situ needs beta";
  return success();
}

LogicalResult MLPOp::verify() { return failure(failed(isRows(*this, "x", getX())) || failed(verifyKeys(*this))); }

LogicalResult LatentMoEOp::verify() {
  if (failed(isRows(*this, "x", getX())) || failed(isPositive(*this, {{"experts", getExperts()}, {"top_k", getTopK()}})))
    return failure();
  if (getTopK() > getExperts())
    return emitOpError() << "top_k is " << getTopK() << ", but there are " << getExperts() << " experts";
  if (static_cast<int64_t>(getLatent()) < 0)
    return emitOpError() << "expected latent of 0 (none) or more, found " << static_cast<int64_t>(getLatent());
  return verifyKeys(*this);
}

LogicalResult HeadOp::verify() {
  if (failed(isRows(*this, "x", getX())) || failed(isIds(*this, "rows", getRows())) ||
      failed(isRows(*this, "result", getResult())))
    return failure();
  if (!getResult().getType().getElementType().isF32())
    return emitOpError() << "result is " << getResult().getType() << ", expected f32 logits";
  return verifyKeys(*this);
}
