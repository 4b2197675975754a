// A slice of the model: the tensors of its layers, and the name of everything else.
#include "compiler/Import/ImportModel.h"
#include "compiler/Import/MatchTensors.h"

using llvm::StringRef;
using llvm::Twine;

namespace k31 {

std::optional<LayerRange> parseLayerRange(StringRef text) {
  auto [begin, end] = text.split(':');
  LayerRange range;
  if (!text.contains(':') || begin.getAsInteger(10, range.begin) || end.getAsInteger(10, range.end) || range.begin < 0 ||
      range.end <= range.begin)
    return std::nullopt;
  return range;
}

namespace importer {

// Members outside of [begin, end) go, with their files and offsets. Returns the number of tensors that went.
static size_t keepMembers(MatchedTensor &tensor, int64_t begin, int64_t end) {
  const size_t experts = std::max<int64_t>(tensor.spec.experts, 1), before = tensor.offsets.size();
  MatchedTensor kept;
  for (auto [i, layer] : llvm::enumerate(tensor.spec.members)) {
    if (layer < begin || layer >= end)
      continue;
    kept.spec.members.push_back(layer);
    for (size_t place = i * experts; place < (i + 1) * experts; ++place) {
      kept.offsets.push_back(tensor.offsets[place]);
      kept.files.push_back(tensor.files[tensor.files.size() == 1 ? 0 : place]);
    }
  }
  if (llvm::all_equal(kept.files) && !kept.files.empty())
    kept.files.resize(1);
  tensor.spec.members = std::move(kept.spec.members);
  tensor.offsets = std::move(kept.offsets);
  tensor.files = std::move(kept.files);
  return before - tensor.offsets.size();
}

static std::string layersText(int64_t begin, int64_t end) {
  return end - begin == 1 ? "layer " + std::to_string(begin) : "layers " + std::to_string(begin) + ":" + std::to_string(end);
}

void keepLayers(Match &match, int64_t begin, int64_t end, int64_t layers, Reporter &reporter) {
  std::string names;
  auto add = [&](const std::string &name) { names += (names.empty() ? "" : ", ") + name; };
  size_t unused = 0;
  std::vector<MatchedTensor> kept;
  for (MatchedTensor &tensor : match.tensors) {
    if (!tensor.spec.members.empty()) {
      unused += keepMembers(tensor, begin, end);
      if (!tensor.spec.members.empty())
        kept.push_back(std::move(tensor));
      continue;
    }
    if (tensor.spec.symbol == "model.embed_tokens" ? begin == 0 : end == layers) {
      kept.push_back(std::move(tensor));
      continue;
    }
    add(match.prefix + tensor.spec.pattern);
    ++unused;
  }
  match.tensors = std::move(kept);
  if (begin > 0)
    add("all of " + layersText(0, begin));
  if (end < layers)
    add("all of " + layersText(end, layers));
  if (unused)
    reporter.note("layers", Twine(unused) + " tensors are not used by a plan of " + layersText(begin, end) + ": " + names);
}

} // namespace importer
} // namespace k31
