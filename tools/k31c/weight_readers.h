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
  struct Arena {
    // By offset: who reads from there, and how many bytes at most.
    std::map<uint64_t, std::map<std::string, uint64_t>> readers;
    uint64_t longest = 0; // bytes that one of them reads
  };
  void add(const plan::Launch &launch, uint32_t stage);

  const plan::Plan &plan;
  std::map<std::pair<uint32_t, uint32_t>, Arena> arenas; // by stage, whose ranks have weights of their own, and arena
};

} // namespace k31::tool
