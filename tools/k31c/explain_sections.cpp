#include "tools/k31c/explain_sections.h"
#include "runtime/base/cat.h"
#include "runtime/schema/launches.h"
#include "tools/k31c/host_groups.h"
#include "tools/k31c/plan_text.h"
#include <algorithm>
#include <map>
#include <set>

namespace k31::tool {
namespace {

class Reader {
public:
  Reader(const plan::Plan &plan, const plan::Entry &entry) : plan(plan), entry(entry), groups(hostGroups(plan, entry)) {
    for (uint32_t i = 0; i < groups.size(); ++i)
      if (groups[i] != kNoGroup)
        members[groups[i]].push_back(placeAt(i));
  }

  std::vector<Section> sections() {
    for (uint32_t i = 0; i < entry.commands()->size(); ++i) {
      const plan::Command kind = entry.commands_type()->GetEnum<plan::Command>(i);
      const void *table = entry.commands()->Get(i);
      if (kind == plan::Command::Launch)
        add(i, step(*static_cast<const plan::Launch *>(table)), *static_cast<const plan::Launch *>(table));
      else if (kind == plan::Command::Collective)
        add(i, step(*static_cast<const plan::Collective *>(table)), *static_cast<const plan::Collective *>(table));
      else if (kind == plan::Command::Copy)
        add(i, step(*static_cast<const plan::Copy *>(table)), *static_cast<const plan::Copy *>(table));
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
    if (plan::has_row(c)) {
      const plan::Kernel &kernel = *plan.kernels()->Get(c.launch()->kernel());
      step.what += cat(", ", kernel.name()->str()), step.config = kernel.config()->str();
    }
    take(step, c.notes());
    return step;
  }
  Step step(const plan::Copy &copy) { return {.what = "copy", .size = cat(copy.source()->bytes(), " bytes")}; }

  void take(Step &step, const flatbuffers::Vector<uint32_t> *notes) {
    if (notes)
      step.notes.assign(notes->begin(), notes->end());
  }

  template <class Command> void add(uint32_t index, Step step, const Command &command) {
    const Place place = placeOf(command.label());
    step.name = place.name, step.stream = command.stream();
    step.together = togetherWith(index, place);
    step.after = std::move(waiting[step.stream]);
    waiting[step.stream].clear();
    latest[step.stream] = step.name;
    if (!open || openLayer != place.layer)
      close();
    open = true, openLayer = place.layer;
    current.push_back(std::move(step));
  }

  Place placeAt(uint32_t index) const {
    const void *table = entry.commands()->Get(index);
    switch (entry.commands_type()->GetEnum<plan::Command>(index)) {
    case plan::Command::Launch:
      return placeOf(static_cast<const plan::Launch *>(table)->label());
    case plan::Command::Collective:
      return placeOf(static_cast<const plan::Collective *>(table)->label());
    case plan::Command::Copy:
      return placeOf(static_cast<const plan::Copy *>(table)->label());
    default:
      return {};
    }
  }

  // The other commands of the same group; those of other layers say how far away they are, so that equal layers stay equal.
  std::vector<std::string> togetherWith(uint32_t index, const Place &place) const {
    std::vector<std::string> names;
    if (groups.empty())
      return names;
    bool own = false; // one of equal names is the command itself
    for (const Place &other : members.at(groups[index])) {
      if (!own && other.name == place.name && other.layer == place.layer) {
        own = true;
        continue;
      }
      std::string name = other.name;
      if (other.layer && place.layer && *other.layer != *place.layer)
        name += cat(" of layer ", *other.layer < *place.layer ? "-" : "+",
                    *other.layer < *place.layer ? *place.layer - *other.layer : *other.layer - *place.layer);
      names.push_back(std::move(name));
    }
    return names;
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
  std::vector<uint32_t> groups;                   // of commands, on a host
  std::map<uint32_t, std::vector<Place>> members; // of groups
  std::vector<Section> done;
  bool open = false;
  std::optional<uint32_t> openLayer;
  std::vector<Step> current;
  std::map<uint32_t, std::string> latest;               // command of each stream
  std::map<uint32_t, std::string> recorded;             // by event
  std::map<uint32_t, std::vector<std::string>> waiting; // by stream: what its next command waits for
};

} // namespace

std::vector<Section> sectionsOf(const plan::Plan &plan, const plan::Entry &entry) { return Reader(plan, entry).sections(); }

Overlap overlapOf(const plan::Plan &plan, const plan::Entry &entry) {
  const uint32_t commands = entry.commands()->size();
  if (const std::vector<uint32_t> groups = hostGroups(plan, entry); !groups.empty()) {
    std::set<uint32_t> steps(groups.begin(), groups.end());
    steps.erase(kNoGroup);
    return {cat(plural(commands, "command"), " in ", plural(steps.size(), "step")),
            "commands of which none touches what another writes run at once, each cut into its tasks; all threads end a step "
            "before the next"};
  }
  if (entry.streams() == 1)
    return {"none, one stream",
            "nothing was given a second stream: the order of launches is that of the list, and a graph starts "
            "each when the one before it has ended"};
  return {cat(plural(entry.streams(), "stream"), ", ", plural(entry.events(), "event")),
          "commands of different streams run at once; an event orders two of them where one writes what the other touches"};
}

} // namespace k31::tool
