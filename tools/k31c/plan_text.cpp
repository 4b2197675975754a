#include "tools/k31c/plan_text.h"
#include "runtime/base/cat.h"
#include <charconv>
#include <cstdio>
#include <numeric>

namespace k31::tool {

std::string versionText(const plan::Plan &plan) { return cat(plan.major(), ".", plan.minor()); }

uint64_t ranks(const plan::Plan &plan) { return uint64_t(plan.mesh()->tp()) * plan.mesh()->dp() * plan.mesh()->pp(); }

std::string meshText(const plan::Plan &plan) {
  const plan::Mesh &mesh = *plan.mesh();
  return cat("tp=", mesh.tp(), " dp=", mesh.dp(), " ep=", mesh.ep(), " pp=", mesh.pp(), " node=", mesh.node(), " (",
             plural(ranks(plan), "rank"), ")");
}

std::string modelText(const plan::Plan &plan) {
  const plan::Model &model = *plan.model();
  std::vector<uint32_t> layers(model.layer_end() - model.layer_begin());
  std::iota(layers.begin(), layers.end(), model.layer_begin());
  return cat(model.family()->str(), ", ", layersText(layers), " of ", model.layers());
}

Place placeOf(const flatbuffers::String *label) {
  const std::string_view text = label ? label->string_view() : std::string_view();
  constexpr std::string_view prefix = "layers.";
  uint32_t layer = 0;
  if (text.starts_with(prefix))
    if (const auto [end, error] = std::from_chars(text.data() + prefix.size(), text.data() + text.size(), layer);
        error == std::errc() && end != text.data() + text.size() && *end == '.')
      return {layer, std::string(end + 1, text.data() + text.size())};
  return {std::nullopt, std::string(text)};
}

std::string splitText(const plan::Plan &plan, const plan::Launch &launch) {
  if (plan.key()->target()->string_view() == "cpu")
    return plural(launch.grid_x(), "task");
  return cat("grid ", launch.grid_x(), " x ", launch.grid_y(), " x ", launch.grid_z(), ", block ", launch.block_x(), ", smem ",
             launch.smem());
}

std::string layersText(const std::vector<uint32_t> &layers) {
  std::string out = layers.size() == 1 ? "layer " : "layers ";
  for (size_t i = 0, end = 0; i < layers.size(); i = end) {
    for (end = i + 1; end < layers.size() && layers[end] == layers[end - 1] + 1;)
      ++end;
    out += cat(i ? ", " : "", layers[i]);
    if (end - i > 1)
      out += cat("-", layers[end - 1]);
  }
  return out;
}

std::string timeText(uint64_t nanoseconds) {
  char text[32];
  if (nanoseconds < 1000000)
    snprintf(text, sizeof text, "%.1f us", double(nanoseconds) / 1e3);
  else
    snprintf(text, sizeof text, "%.1f ms", double(nanoseconds) / 1e6);
  return text;
}

std::string plural(uint64_t count, std::string_view what) { return cat(count, " ", what, count == 1 ? "" : "s"); }

} // namespace k31::tool
