// k31c inspect: what a plan holds, for people or as JSON.
#include "runtime/base/cat.h"
#include "runtime/plan/plan_file.h"
#include "tools/k31c/commands.h"
#include "tools/k31c/plan_json.h"
#include "tools/k31c/plan_text.h"
#include "tools/k31c/weight_readers.h"

using Json = nlohmann::ordered_json;

namespace k31::tool {
namespace {

struct Options {
  std::string plan;
  bool memory = false, schedule = false, kernels = false, collectives = false, weights = false, json = false;
  bool all() const { return !memory && !schedule && !kernels && !collectives && !weights; }
};

void printFacts(const plan::Plan &plan) {
  const plan::Model &model = *plan.model();
  std::printf("plan version %s by %s, key %s\n", versionText(plan).c_str(), plan.key()->compiler()->c_str(),
              plan.key()->digest()->c_str());
  std::printf("target %s, mesh %s\n", plan.key()->target()->c_str(), meshText(plan).c_str());
  std::printf("%s, hidden %u, vocab %u, context %u, batch %u, activations %s\n", modelText(plan).c_str(), model.hidden(),
              model.vocab(), model.max_context(), model.max_batch(), plan::EnumNameDType(model.activations()));
  // One line a target: on a GPU every kernel has an image of its own.
  for (uint32_t i = 0, n = 0; i < plan.images()->size(); i += n) {
    const std::string_view target = plan.images()->Get(i)->target()->string_view();
    uint64_t bytes = 0;
    for (n = 0; i + n < plan.images()->size() && plan.images()->Get(i + n)->target()->string_view() == target; ++n)
      bytes += plan.images()->Get(i + n)->code()->size();
    std::printf("image %-16s %s%s\n", std::string(target).c_str(), readableBytes(bytes).c_str(),
                n > 1 ? (" in " + std::to_string(n) + " images").c_str() : "");
  }
  for (const plan::Entry *entry : *plan.entries())
    std::printf("entry %-16s %s, %s, %s, %s, %s\n", entry->name()->c_str(), plan::EnumNameEntryKind(entry->kind()),
                plural(entry->rows(), "row").c_str(), plural(entry->segments(), "segment").c_str(),
                plural(entry->logit_rows(), "logit row").c_str(), plural(entry->commands()->size(), "command").c_str());
}

void printSchedule(const plan::Plan &plan, bool collectivesOnly) {
  const Json schedule = scheduleJson(plan, collectivesOnly);
  for (const auto &[entry, commands] : schedule.items()) {
    uint64_t bytes = 0;
    for (const Json &command : commands)
      bytes += command.value("bytes", uint64_t(0));
    std::printf("entry %s: %zu %s%s\n", entry.c_str(), commands.size(), collectivesOnly ? "collectives" : "commands",
                collectivesOnly ? cat(" of ", bytes, " bytes a rank").c_str() : "");
    for (const Json &command : commands) {
      std::string line = "  " + command["command"].get<std::string>();
      for (const char *field : {"label", "kernel", "op", "axis"})
        if (command.contains(field))
          line += "  " + command[field].get<std::string>();
      if (command.contains("ranks"))
        line += cat("  ", command["ranks"].get<uint32_t>(), " ranks, ", command["bytes"].get<uint64_t>(), " bytes of ",
                    command["dtype"].get<std::string>(), " each, via ", command["transport"].get<std::string>());
      if (command.contains("args"))
        for (const Json &arg : command["args"])
          line += "\n      " + arg.get<std::string>();
      std::puts(line.c_str());
    }
  }
}

void printKernels(const plan::Plan &plan) {
  for (const plan::Kernel *kernel : *plan.kernels())
    std::printf("kernel %s\n    %s\n", kernel->name()->c_str(), kernel->config()->c_str());
}

void printWeights(const plan::Plan &plan) {
  const WeightReaders readers(plan);
  for (const plan::WeightStack *stack : *plan.weights()) {
    std::string shape;
    for (uint64_t extent : *stack->shape())
      shape += (shape.empty() ? "" : " x ") + std::to_string(extent);
    // Parts of a stack, and stacks that lie one behind the other, share a destination: the first row's place tells them apart.
    const uint64_t first = stack->dest() + stack->layout()->group_begin() * stack->layout()->dest_row_bytes();
    std::printf("%s\n    %u of %s %s, at %llu every %llu bytes\n", stack->pattern()->c_str(), stack->offsets()->size(),
                stack->dtype()->c_str(), shape.c_str(), static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(stack->stride()));
    std::string names;
    for (const std::string &reader : readers.of(*stack))
      names += (names.empty() ? "" : ", ") + reader;
    std::printf("    read by %s\n", names.empty() ? "nothing" : names.c_str());
  }
}

int inspect(const Options &o) {
  auto file = PlanFile::open(o.plan);
  if (!file)
    return fail(1, file.error().message);
  const plan::Plan &plan = file->plan();

  if (o.json) {
    Json out = factsJson(plan);
    out["memory"] = memoryJson(plan);
    if (o.schedule)
      out["schedule"] = scheduleJson(plan, false);
    if (o.collectives)
      out["collectives"] = scheduleJson(plan, true);
    if (o.kernels)
      out["kernels"] = kernelsJson(plan);
    if (o.weights)
      out["weights"] = weightsJson(plan);
    std::puts(out.dump(2).c_str());
    return 0;
  }
  if (o.all())
    printFacts(plan);
  if (o.memory || o.all())
    std::fputs(memoryText(plan).c_str(), stdout);
  if (o.schedule)
    printSchedule(plan, false);
  if (o.collectives)
    printSchedule(plan, true);
  if (o.kernels)
    printKernels(plan);
  if (o.weights)
    printWeights(plan);
  return 0;
}

} // namespace

Command addInspect(CLI::App &app) {
  auto options = std::make_shared<Options>();
  Options &o = *options;
  CLI::App *command = app.add_subcommand("inspect", "Show what a plan holds: entries and memory, unless a part is asked for.");
  command->footer("Example:\n  k31c inspect tiny.k31 --memory\n  k31c inspect tiny.k31 --json | jq .memory.total");
  command->add_option("plan", o.plan, "A plan file")->required()->type_name("PLAN");
  command->add_flag("--memory", o.memory, "The memory table: its total is the plan's arenas and reserve");
  command->add_flag("--schedule", o.schedule, "Every command of every entry, with the bytes that it reads and writes");
  command->add_flag("--kernels", o.kernels, "Every kernel, with what was fused into it and its Config");
  command->add_flag("--collectives", o.collectives, "Every collective of every entry, with the bytes that each rank gives to it");
  command->add_flag("--weights", o.weights, "Every weight stack, its place, and the launches that read it");
  command->add_flag("--json", o.json,
                    "As JSON: version, target, mesh, ranks, images, entries, memory, and the parts that are asked for");
  return {command, [options] { return inspect(*options); }};
}

} // namespace k31::tool
