// The commands of an entry layer by layer, equal layers once.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstdint>
#include <string>
#include <vector>

namespace k31::tool {

// A launch, collective or copy as it is in every layer of a section.
struct Step {
  std::string name, what; // "self_attn.q_proj"; "nn.linear bias+situ" or "all_reduce over tp"
  std::string config;     // of a kernel
  std::string size;       // "7 tasks"
  uint32_t stream = 0;
  std::vector<std::string> after;    // what it waits for on other streams
  std::vector<std::string> together; // what runs at the same time on a host
  std::vector<uint32_t> notes;
  bool operator==(const Step &) const = default;
};

// Neighbouring commands of one layer, or of none, and all layers that have the same ones.
struct Section {
  std::vector<uint32_t> layers;
  std::vector<Step> steps;
};

std::vector<Section> sectionsOf(const plan::Plan &plan, const plan::Entry &entry);

// What of an entry runs at once, and why no more: "131 steps for 221 commands", "one stream".
struct Overlap {
  std::string choice, reason;
};
Overlap overlapOf(const plan::Plan &plan, const plan::Entry &entry);

} // namespace k31::tool
