// Which launches a plan's commands have, and what their outputs are called.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <string>
#include <string_view>

namespace k31::plan {

// Does the kernel of this collective by peer go on with a row op on the sum? It then has more arguments than source, live,
// destination and area.
inline bool has_row(const Collective &c) { return c.launch() && c.launch()->args()->size() > (c.live() ? 4u : 3u); }

// What command i of an entry computes: its launch, or that of a collective that goes on with a row op; else null.
inline const Launch *launch_of(const Entry &entry, uint32_t i) {
  if (entry.commands_type()->GetEnum<Command>(i) == Command::Launch)
    return entry.commands()->GetAs<Launch>(i);
  if (entry.commands_type()->GetEnum<Command>(i) == Command::Collective)
    if (const auto *c = entry.commands()->GetAs<Collective>(i); has_row(*c))
      return c->launch();
  return nullptr;
}

// The label of output i of a launch: that of the launch. Products that were merged are labelled
// "layers.5.self_attn.qkv_proj+self_attn.g_proj"; output 1 of such a launch is "layers.5.self_attn.g_proj".
inline std::string output_label(std::string_view label, uint32_t i) {
  std::string layer;
  if (constexpr std::string_view prefix = "layers."; label.starts_with(prefix))
    layer = label.substr(0, label.find('.', prefix.size()) + 1);
  for (uint32_t part = 0;; ++part) {
    const size_t end = label.find('+');
    if (part == i)
      return (part ? layer : "") + std::string(label.substr(0, end));
    if (end == label.npos)
      return part ? layer + std::string(label) : std::string(label);
    label.remove_prefix(end + 1);
  }
}

} // namespace k31::plan
