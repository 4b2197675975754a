// k31c explain: which choices made the plan, layer by layer, and what they were compared with. Reads the plan's notes.
#include "runtime/base/cat.h"
#include "runtime/plan/plan_file.h"
#include "tools/k31c/commands.h"
#include "tools/k31c/plan_text.h"
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

using Json = nlohmann::ordered_json;

namespace k31::tool {
namespace {

struct Options {
  std::string plan, entry;
  std::optional<uint32_t> layer;
  bool json = false;
};

// A launch, collective or copy as it is in every layer of a section.
struct Step {
  std::string name, what; // "self_attn.q_proj"; "nn.linear bias+situ" or "all_reduce over tp"
  std::string config;     // of a kernel
  std::string size;       // "7 tasks"
  uint32_t stream = 0;
  std::vector<std::string> after; // what it waits for on other streams
  std::vector<uint32_t> notes;
  bool operator==(const Step &) const = default;
};

// Neighbouring commands of one layer, or of none, and all layers that have the same ones.
struct Section {
  std::vector<uint32_t> layers;
  std::vector<Step> steps;
};

class Reader {
public:
  Reader(const plan::Plan &plan, const plan::Entry &entry) : plan(plan), entry(entry) {}

  std::vector<Section> sections() {
    for (uint32_t i = 0; i < entry.commands()->size(); ++i) {
      const plan::Command kind = entry.commands_type()->GetEnum<plan::Command>(i);
      const void *table = entry.commands()->Get(i);
      if (kind == plan::Command::Launch)
        add(step(*static_cast<const plan::Launch *>(table)), *static_cast<const plan::Launch *>(table));
      else if (kind == plan::Command::Collective)
        add(step(*static_cast<const plan::Collective *>(table)), *static_cast<const plan::Collective *>(table));
      else if (kind == plan::Command::Copy)
        add(step(*static_cast<const plan::Copy *>(table)), *static_cast<const plan::Copy *>(table));
      else if (kind == plan::Command::Record)
        recorded[static_cast<const plan::Record *>(table)->event()] = latest[static_cast<const plan::Record *>(table)->stream()];
      else
        waiting[static_cast<const plan::Wait *>(table)->stream()].push_back(
            recorded[static_cast<const plan::Wait *>(table)->event()]);
    }
    close();
    return std::move(done);
  }

private:
  Step step(const plan::Launch &launch) {
    const plan::Kernel &kernel = *plan.kernels()->Get(launch.kernel());
    Step step{.what = kernel.name()->str(), .config = kernel.config()->str(), .size = splitText(plan, launch)};
    take(step, launch.notes());
    return step;
  }
  Step step(const plan::Collective &c) {
    Step step{.what = cat(plan::EnumNameCollectiveOp(c.op()), " over ", plan::EnumNameMeshAxis(c.axis()), " by ",
                          plan::EnumNameTransport(c.transport())),
              .size = cat(c.count(), " x ", plan::EnumNameDType(c.dtype()))};
    take(step, c.notes());
    return step;
  }
  Step step(const plan::Copy &copy) { return {.what = "copy", .size = cat(copy.source()->bytes(), " bytes")}; }

  void take(Step &step, const flatbuffers::Vector<uint32_t> *notes) {
    if (notes)
      step.notes.assign(notes->begin(), notes->end());
  }

  template <class Command> void add(Step step, const Command &command) {
    const Place place = placeOf(command.label());
    step.name = place.name, step.stream = command.stream();
    step.after = std::move(waiting[step.stream]);
    waiting[step.stream].clear();
    latest[step.stream] = step.name;
    if (!open || openLayer != place.layer)
      close();
    open = true, openLayer = place.layer;
    current.push_back(std::move(step));
  }

  // Ends the section; one that layers before have too becomes theirs.
  void close() {
    if (!open)
      return;
    open = false;
    const auto same = std::find_if(done.begin(), done.end(), [&](const Section &section) {
      return openLayer && !section.layers.empty() && section.steps == current;
    });
    if (same == done.end())
      done.push_back({openLayer ? std::vector{*openLayer} : std::vector<uint32_t>(), std::move(current)});
    else
      same->layers.push_back(*openLayer);
    current.clear();
  }

  const plan::Plan &plan;
  const plan::Entry &entry;
  std::vector<Section> done;
  bool open = false;
  std::optional<uint32_t> openLayer;
  std::vector<Step> current;
  std::map<uint32_t, std::string> latest;               // command of each stream
  std::map<uint32_t, std::string> recorded;             // by event
  std::map<uint32_t, std::vector<std::string>> waiting; // by stream: what its next command waits for
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
  Json entries = Json::array();
  bool found = false;
  if (!o.json) {
    std::printf("%s: target %s, mesh %s\n", modelText(plan).c_str(), plan.key()->target()->c_str(), meshText(plan).c_str());
    if (plan.minor() < 2)
      std::printf("format %s does not say why anything was chosen; compile the plan again\n", versionText(plan).c_str());
    else
      std::puts("times are estimates for the capacity of each entry; k31-run bench measures");
  }
  for (const plan::Entry *entry : *plan.entries()) {
    if (!o.entry.empty() && entry->name()->string_view() != o.entry)
      continue;
    found = true;
    std::vector<Section> sections = Reader(plan, *entry).sections();
    if (o.layer)
      std::erase_if(sections, [&](const Section &s) { return std::ranges::find(s.layers, *o.layer) == s.layers.end(); });
    if (o.json) {
      Json &one = entries.emplace_back(Json{{"name", entry->name()->str()}, {"streams", entry->streams()}});
      one["notes"] = Json::array();
      for (uint32_t i = 0; entry->notes() && i < entry->notes()->size(); ++i)
        one["notes"].push_back(noteJson(*plan.notes()->Get(entry->notes()->Get(i))));
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
    for (const Section &section : sections)
      printSection(plan, section);
  }
  if (!found)
    return fail(1, cat("--entry ", o.entry, ": the plan has ", entryNames(plan)));
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
