// The tensors that a configuration calls for: names, shapes, and the symbols they get in the module.
#pragma once
#include "compiler/Import/ModelConfig.h"
#include "dialects/Support/Pattern.h"
#include <vector>

namespace k31::importer {

// plain: BF16 or F32. packed, scale: MXFP4, two codes a byte and one scale for 32 of them. decay: A_log, which may be padded.
enum class TensorKind { plain, packed, scale, decay };

struct TensorSpec {
  std::string symbol;           // of the nn.tensor: "self_attn.q_proj"
  std::string pattern;          // without prefix; "{}" stands for the layer, then the expert
  std::vector<int64_t> members; // layers; empty: one tensor
  int64_t experts = 0;          // 0: no expert dimension
  std::vector<int64_t> stored;  // shape in the file
  std::vector<int64_t> shape;   // of one tensor in the module: elements instead of bytes, no unit dimensions
  TensorKind kind = TensorKind::plain;
};

// `packed` says of each layer whether its routed experts are MXFP4.
std::vector<TensorSpec> tensorTable(const ModelConfig &config, const std::vector<bool> &packed);

// Symbol of a tensor that KDA and full attention layers both have, in the two forms it may take in one module.
std::string attentionSymbol(llvm::StringRef name, bool fullAttention);

// Calls `visit(name, place)` for every tensor of `spec`, members first, then experts.
template <class F> void forEachName(const TensorSpec &spec, llvm::StringRef prefix, F &&visit) {
  std::string name; // one buffer for half a million names
  constexpr size_t length = kPlaceholder.size();
  size_t first = spec.pattern.find(kPlaceholder),
         second = first == std::string::npos ? first : spec.pattern.find(kPlaceholder, first + length);
  size_t place = 0;
  llvm::StringRef pattern = spec.pattern;
  auto expert = [&](size_t head) {
    if (!spec.experts)
      return visit(llvm::StringRef(name.append(pattern.substr(head))), place++);
    name.append(pattern.slice(head, second));
    size_t stem = name.size();
    for (int64_t e = 0; e < spec.experts; ++e) {
      name.resize(stem);
      name.append(std::to_string(e)).append(pattern.substr(second + length));
      visit(llvm::StringRef(name), place++);
    }
  };
  if (spec.members.empty()) {
    name = prefix.str();
    return expert(0);
  }
  for (int64_t member : spec.members) {
    name = prefix.str();
    name.append(pattern.substr(0, first)).append(std::to_string(member));
    expert(first + length);
  }
}

} // namespace k31::importer
