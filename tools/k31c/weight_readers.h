// Which launches read a weight.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace k31::tool {

// Launches by the place of what they read: "self_attn.q_proj (nn.linear)", once for all layers and entries.
class WeightReaders {
public:
  explicit WeightReaders(const plan::Plan &plan);

  // Of any member of the stack, in order of name.
  std::vector<std::string> of(const plan::WeightStack &stack) const;

private:
  void add(const plan::Launch &launch);

  const plan::Plan &plan;
  // By arena and offset: who reads from there, and how many bytes at most.
  std::map<std::pair<uint32_t, uint64_t>, std::map<std::string, uint64_t>> byPlace;
};

} // namespace k31::tool
