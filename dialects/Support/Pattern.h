// Names of a checkpoint's tensors as patterns: "model.layers.{}.experts.{}.w1". The first placeholder stands for the layer, the
// next one for the expert.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <cstdint>
#include <string>

namespace k31 {

inline constexpr llvm::StringLiteral kPlaceholder = "{}";

inline size_t placeholders(llvm::StringRef pattern) { return pattern.count(kPlaceholder); }

// "a.{}.b.{}" and 3: "a.3.b.{}".
inline std::string fillPlaceholder(llvm::StringRef pattern, int64_t number) {
  auto [before, after] = pattern.split(kPlaceholder);
  return (before + llvm::Twine(number) + after).str();
}

} // namespace k31
