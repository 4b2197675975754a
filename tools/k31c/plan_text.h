// What the commands that read plans share: names, numbers and lists for people.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k31::tool {

// "1.2"
std::string versionText(const plan::Plan &plan);
uint64_t ranks(const plan::Plan &plan);
// "tp=2 dp=1 ep=2 pp=1 node=2 (2 ranks)", "... (1 rank)"
std::string meshText(const plan::Plan &plan);
// "kimi-k3.1, layers 0 to 9 of 9"
std::string modelText(const plan::Plan &plan);

// "layers.3.self_attn.q_proj" is layer 3 and "self_attn.q_proj"; other labels have no layer.
struct Place {
  std::optional<uint32_t> layer;
  std::string name;
};
Place placeOf(const flatbuffers::String *label);

// How a launch is split: "7 tasks", "grid 8 x 1 x 1, block 128, smem 4096".
std::string splitText(const plan::Plan &plan, const plan::Launch &launch);

// "layer 3", "layers 1-2, 5-6"; of ascending numbers.
std::string layersText(const std::vector<uint32_t> &layers);

// "12.3 us", "1.2 ms"
std::string timeText(uint64_t nanoseconds);

// "1 rank", "2 ranks"
std::string plural(uint64_t count, std::string_view what);

} // namespace k31::tool
