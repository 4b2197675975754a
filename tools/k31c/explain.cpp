// k31c explain: which choices made the plan, layer by layer, and what they were compared with. Reads the plan's notes.
#include "runtime/base/cat.h"
#include "runtime/plan/plan_file.h"
#include "tools/k31c/commands.h"
#include "tools/k31c/explain_sections.h"
#include "tools/k31c/plan_text.h"
#include <algorithm>
#include <nlohmann/json.hpp>

using Json = nlohmann::ordered_json;

namespace k31::tool {
namespace {

struct Options {
  std::string plan, entry;
  std::optional<uint32_t> layer;
  bool json = false;
};

Json noteJson(const plan::Note &note) {
  Json out{{"about", note.about()->str()}, {"choice", note.choice()->str()}, {"reason", note.reason()->str()}};
  for (uint32_t i = 0; note.candidates() && i < note.candidates()->size(); ++i)
    out["candidates"].push_back(
        {{"choice", note.candidates()->Get(i)->choice()->str()}, {"us", double(note.candidates()->Get(i)->nanoseconds()) / 1e3}});
  return out;
}

Json sectionJson(const plan::Plan &plan, const Section &section) {
  Json out{{"layers", section.layers}, {"steps", Json::array()}};
  for (const Step &step : section.steps) {
    Json &one = out["steps"].emplace_back(Json{{"name", step.name}, {"what", step.what}, {"size", step.size}});
    if (!step.config.empty())
      one["config"] = step.config;
    one["stream"] = step.stream;
    if (!step.after.empty())
      one["after"] = step.after;
    if (!step.together.empty())
      one["together"] = step.together;
    one["notes"] = Json::array();
    for (uint32_t note : step.notes)
      one["notes"].push_back(noteJson(*plan.notes()->Get(note)));
  }
  return out;
}

constexpr size_t kShownCandidates = 5; // the cheapest; JSON has all

void printNote(const plan::Note &note, const char *indent) {
  std::printf("%s%-9s %s: %s\n", indent, note.about()->c_str(), note.choice()->c_str(), note.reason()->c_str());
  if (!note.candidates() || note.candidates()->size() < 2)
    return;
  std::vector<std::pair<uint64_t, uint32_t>> byTime;
  for (uint32_t i = 0; i < note.candidates()->size(); ++i)
    byTime.emplace_back(note.candidates()->Get(i)->nanoseconds(), i);
  std::sort(byTime.begin(), byTime.end());
  std::string compared;
  for (size_t i = 0; i < std::min(byTime.size(), kShownCandidates); ++i)
    compared += cat(i ? ", " : "", note.candidates()->Get(byTime[i].second)->choice()->str(), " ", timeText(byTime[i].first));
  if (byTime.size() > kShownCandidates)
    compared += cat(" and ", byTime.size() - kShownCandidates, " more up to ", timeText(byTime.back().first));
  std::printf("%s%-9s compared: %s\n", indent, "", compared.c_str());
}

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += cat(text.empty() ? "" : ", ", name);
  return text;
}

void printSection(const plan::Plan &plan, const Section &section) {
  if (section.layers.empty())
    std::puts("\n  outside of the layers");
  else
    std::printf("\n  %s\n", layersText(section.layers).c_str());
  for (const Step &step : section.steps) {
    std::string line = cat("    ", step.name, ": ", step.what, ", ", step.size);
    if (step.stream)
      line += cat(", stream ", step.stream);
    for (const std::string &other : step.after)
      line += cat(", after ", other);
    std::puts(line.c_str());
    if (!step.config.empty())
      std::printf("      config    %s\n", step.config.c_str());
    if (!step.together.empty())
      std::printf("      overlap   at once with %s: none of them touches what another writes\n", joined(step.together).c_str());
    for (uint32_t note : step.notes)
      printNote(*plan.notes()->Get(note), "      ");
  }
}

std::string entryNames(const plan::Plan &plan) {
  std::string names;
  for (const plan::Entry *entry : *plan.entries())
    names += (names.empty() ? "" : ", ") + entry->name()->str();
  return names;
}

int explain(const Options &o) {
  auto file = PlanFile::open(o.plan);
  if (!file)
    return fail(1, file.error().message);
  const plan::Plan &plan = file->plan();
  const plan::Model &model = *plan.model();
  if (o.layer && (*o.layer < model.layer_begin() || *o.layer >= model.layer_end()))
    return fail(1, cat("--layer ", *o.layer, ": the plan has layers ", model.layer_begin(), " to ", model.layer_end() - 1));
  if (!o.entry.empty() &&
      std::ranges::none_of(*plan.entries(), [&](const plan::Entry *e) { return e->name()->string_view() == o.entry; }))
    return fail(1, cat("--entry ", o.entry, ": the plan has ", entryNames(plan)));
  Json entries = Json::array();
  if (!o.json) {
    std::printf("%s: target %s, mesh %s\n", modelText(plan).c_str(), plan.key()->target()->c_str(), meshText(plan).c_str());
    if (plan.minor() < 2)
      std::printf("format %s does not say why anything was chosen; compile the plan again\n", versionText(plan).c_str());
    else
      std::printf("times are estimates for the capacity of each entry%s; k31-run bench measures\n",
                  plan.key()->target()->string_view() == "cpu" ? ", with a core for each task" : "");
  }
  for (const plan::Entry *entry : *plan.entries()) {
    if (!o.entry.empty() && entry->name()->string_view() != o.entry)
      continue;
    std::vector<Section> sections = sectionsOf(plan, *entry);
    if (o.layer)
      std::erase_if(sections, [&](const Section &s) { return std::ranges::find(s.layers, *o.layer) == s.layers.end(); });
    if (o.json) {
      Json &one = entries.emplace_back(Json{{"name", entry->name()->str()}, {"streams", entry->streams()}});
      one["notes"] = Json::array();
      for (uint32_t i = 0; entry->notes() && i < entry->notes()->size(); ++i)
        one["notes"].push_back(noteJson(*plan.notes()->Get(entry->notes()->Get(i))));
      const Overlap overlap = overlapOf(plan, *entry);
      one["notes"].push_back({{"about", "overlap"}, {"choice", overlap.choice}, {"reason", overlap.reason}});
      one["sections"] = Json::array();
      for (const Section &section : sections)
        one["sections"].push_back(sectionJson(plan, section));
      continue;
    }
    std::printf("\nentry %s: %s for up to %s of %s, %s on %s\n", entry->name()->c_str(), plan::EnumNameEntryKind(entry->kind()),
                plural(entry->rows(), "row").c_str(), plural(entry->segments(), "sequence").c_str(),
                plural(entry->commands()->size(), "command").c_str(), plural(entry->streams(), "stream").c_str());
    for (uint32_t i = 0; entry->notes() && i < entry->notes()->size(); ++i)
      printNote(*plan.notes()->Get(entry->notes()->Get(i)), "  ");
    const Overlap overlap = overlapOf(plan, *entry);
    std::printf("  overlap   %s: %s\n", overlap.choice.c_str(), overlap.reason.c_str());
    for (const Section &section : sections)
      printSection(plan, section);
  }
  if (o.json)
    std::puts(
        Json{{"version", versionText(plan)}, {"target", plan.key()->target()->str()}, {"entries", entries}}.dump(2).c_str());
  return 0;
}

} // namespace

Command addExplain(CLI::App &app) {
  auto options = std::make_shared<Options>();
  Options &o = *options;
  CLI::App *command = app.add_subcommand("explain", "Say why a plan is as it is: kernels, fusions, layouts.");
  command->footer("Layers that are equal are printed once. For each operation: its kernel and Config, how it is split, what was\n"
                  "fused into it, each with the reason and the estimated times of the choices that were compared.\n"
                  "Examples:\n"
                  "  k31c explain tiny.k31 --entry decode_b1 --layer 3\n"
                  "  k31c explain tiny.k31 --json | jq '.entries[0].sections[1].steps[].notes'");
  command->add_option("plan", o.plan, "A plan file")->required()->type_name("PLAN");
  command->add_option("--entry", o.entry, "One entry only, such as decode_b1; all unless given")->type_name("NAME");
  command->add_option("--layer", o.layer, "One layer only, counted from 0")->type_name("N");
  command->add_flag("--json", o.json, "As JSON: entries, their sections of equal layers, steps, notes and candidates");
  return {command, [options] { return explain(*options); }};
}

} // namespace k31::tool
