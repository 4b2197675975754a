#include "compiler/Import/MatchTensors.h"
#include "llvm/ADT/CachedHashString.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;
using llvm::Twine;

namespace k31::importer {
namespace {

std::string shown(llvm::ArrayRef<int64_t> shape) {
  std::string out = "[";
  for (auto [i, dim] : llvm::enumerate(shape))
    out += (i ? ", " : "") + std::to_string(dim);
  return out + "]";
}

std::string shown(const std::vector<uint64_t> &shape) {
  return shown(llvm::ArrayRef(reinterpret_cast<const int64_t *>(shape.data()), shape.size()));
}

bool equal(const std::vector<uint64_t> &found, const std::vector<int64_t> &wanted) {
  return std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(),
                    [](uint64_t f, int64_t w) { return f == uint64_t(w); });
}

class Matcher {
public:
  Matcher(const ModelConfig &config, const Checkpoint &checkpoint, Reporter &reporter)
      : config(config), checkpoint(checkpoint), reporter(reporter), used(checkpoint.tensors.size()) {
    places.reserve(checkpoint.tensors.size());
    for (auto [i, tensor] : llvm::enumerate(checkpoint.tensors))
      places.try_emplace(llvm::CachedHashStringRef(tensor.name), i);
  }

  Match run() {
    Match match;
    for (StringRef prefix : {"language_model.", ""})
      if (match.prefix = prefix; find((prefix + "model.embed_tokens.weight").str()))
        break;
    match.packed = findPacked(match.prefix);
    for (TensorSpec &spec : tensorTable(config, match.packed))
      match.tensors.push_back(collect(std::move(spec), match.prefix));
    match.visionTensors = checkUnused();
    return match;
  }

private:
  const TensorInfo *find(StringRef name) {
    auto it = places.find(llvm::CachedHashStringRef(name));
    if (it == places.end())
      return nullptr;
    used[it->second] = true;
    return &checkpoint.tensors[it->second];
  }

  // The name of an expert's first matrix decides: the lists of quantization_config contradict the released files.
  std::vector<bool> findPacked(StringRef prefix) {
    std::vector<bool> packed(config.layers);
    bool checked = false; // one line, not one a layer
    for (int64_t l = 0; l < config.layers; ++l) {
      std::string name = (prefix + "model.layers." + Twine(l) + ".block_sparse_moe.experts.0.w1.weight_packed").str();
      if (config.isDense(l) || !places.contains(llvm::CachedHashStringRef(name)))
        continue;
      packed[l] = true;
      if (std::exchange(checked, true))
        continue;
      if (!config.moe.mayBeQuantized)
        reporter.error(name, name + " is packed, but config.json has no quantization_config that says how");
      for (int64_t columns : {config.moe.width, config.moe.latent ? config.moe.latent : config.hidden})
        if (columns % 32)
          reporter.error(name, name + " is packed, but an expert's matrix has " + Twine(columns) +
                                   " columns, expected a multiple of 32");
    }
    return packed;
  }

  MatchedTensor collect(TensorSpec spec, StringRef prefix) {
    MatchedTensor out;
    std::string first;
    size_t count = std::max<size_t>(spec.members.size(), 1) * std::max<int64_t>(spec.experts, 1);
    out.files.reserve(count), out.offsets.reserve(count);
    forEachName(spec, prefix, [&](StringRef name, size_t) {
      const TensorInfo *info = find(name);
      if (!info)
        return reporter.error(name, name + " is missing, expected " + dtypes(spec) + " " + shown(spec.stored));
      if (!acceptShape(spec, *info, first.empty()) || !acceptType(spec, *info))
        return;
      if (first.empty())
        first = info->name, out.dtype = info->dtype;
      else if (info->dtype != out.dtype)
        return reporter.error(name, name + " is " + info->dtype + ", but " + first + " is " + out.dtype +
                                        "; the tensors of all layers and experts must be stored alike");
      out.files.push_back(static_cast<int32_t>(info->file));
      out.offsets.push_back(static_cast<int64_t>(info->begin));
    });
    if (llvm::all_equal(out.files) && !out.files.empty())
      out.files.resize(1);
    out.spec = std::move(spec);
    return out;
  }

  static StringRef dtypes(const TensorSpec &spec) {
    return spec.kind == TensorKind::packed || spec.kind == TensorKind::scale ? "U8" : "BF16 or F32";
  }

  bool acceptType(const TensorSpec &spec, const TensorInfo &info) {
    bool bytes = spec.kind == TensorKind::packed || spec.kind == TensorKind::scale;
    if (bytes ? info.dtype == "U8" : info.dtype == "BF16" || info.dtype == "F32")
      return true;
    reporter.error(info.name, info.name + " is " + info.dtype + ", expected " + dtypes(spec));
    return false;
  }

  bool acceptShape(TensorSpec &spec, const TensorInfo &info, bool first) {
    if (spec.kind == TensorKind::decay)
      return acceptDecay(spec, info, first);
    if (equal(info.shape, spec.stored))
      return true;
    reporter.error(info.name, info.name + " has shape " + shown(info.shape) + ", expected " + shown(spec.stored));
    return false;
  }

  // A_log: one value a head, as [1, 1, heads, 1] or as a vector that may be padded behind the last head.
  bool acceptDecay(TensorSpec &spec, const TensorInfo &info, bool first) {
    const int64_t heads = config.kda.heads;
    bool flat = info.shape.size() == 1 && info.shape[0] >= uint64_t(heads) && info.shape[0] <= (uint64_t(1) << 20);
    if (!flat && !equal(info.shape, {1, 1, heads, 1})) {
      reporter.error(info.name, info.name + " has shape " + shown(info.shape) + ", expected [" + Twine(heads) +
                                    "] or longer, or [1, 1, " + Twine(heads) + ", 1]");
      return false;
    }
    int64_t length = flat ? int64_t(info.shape[0]) : heads;
    if (first)
      spec.shape = {length};
    if (spec.shape[0] == length)
      return true;
    reporter.error(info.name,
                   info.name + " has " + Twine(length) + " values, but the first layer's A_log has " + Twine(spec.shape[0]));
    return false;
  }

  int64_t checkUnused() {
    int64_t vision = 0;
    for (auto [i, tensor] : llvm::enumerate(checkpoint.tensors)) {
      StringRef name = tensor.name;
      if (used[i])
        continue;
      if (name.starts_with("vision_tower.") || name.starts_with("mm_projector."))
        ++vision;
      else
        reporter.error(name, name + " is unknown: this configuration has no such tensor");
    }
    return vision;
  }

  const ModelConfig &config;
  const Checkpoint &checkpoint;
  Reporter &reporter;
  llvm::DenseMap<llvm::CachedHashStringRef, uint32_t> places;
  std::vector<bool> used;
};

} // namespace

llvm::FailureOr<Match> matchTensors(const ModelConfig &config, const Checkpoint &checkpoint, Reporter &reporter) {
  Match match = Matcher(config, checkpoint, reporter).run();
  if (reporter.failed())
    return llvm::failure();
  if (match.visionTensors)
    reporter.note(
        "vision_tower",
        Twine(match.visionTensors) +
            " tensors of the vision tower and its projector (vision_tower., mm_projector.) are not used by a text plan");
  return match;
}

} // namespace k31::importer
