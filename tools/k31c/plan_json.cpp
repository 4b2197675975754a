#include "tools/k31c/plan_json.h"
#include "compiler/Plan/MemoryTable.h"
#include "runtime/base/cat.h"
#include "runtime/schema/launches.h"
#include "runtime/schema/shares.h"
#include "tools/k31c/plan_text.h"
#include "tools/k31c/weight_readers.h"

using Json = nlohmann::ordered_json;

namespace k31::tool {

static std::string sliceText(const plan::Plan &plan, const plan::Slice &slice) {
  return cat(plan::EnumNameAccess(slice.access()), " ", plan.arenas()->Get(slice.arena())->name()->str(), "[", slice.offset(),
             ", +", slice.bytes(), ")");
}

Json factsJson(const plan::Plan &plan) {
  Json out;
  const plan::Key &key = *plan.key();
  out["version"] = versionText(plan);
  out["compiler"] = key.compiler()->str();
  out["target"] = key.target()->str();
  out["digest"] = key.digest()->str();
  out["checkpoint"] = key.checkpoint()->str();
  for (const plan::Option *option : *key.options())
    out["options"][option->name()->str()] = option->value()->str();
  const plan::Mesh &mesh = *plan.mesh();
  out["mesh"] = {{"tp", mesh.tp()}, {"dp", mesh.dp()}, {"ep", mesh.ep()}, {"pp", mesh.pp()}, {"node", mesh.node()}};
  out["ranks"] = ranks(plan);
  const plan::Model &model = *plan.model();
  out["model"] = {{"family", model.family()->str()},    {"layers", {model.layer_begin(), model.layer_end()}},
                  {"hidden", model.hidden()},           {"vocab", model.vocab()},
                  {"max_context", model.max_context()}, {"max_batch", model.max_batch()}};
  out["images"] = Json::array();
  for (const plan::Image *image : *plan.images())
    out["images"].push_back({{"target", image->target()->str()}, {"bytes", image->code()->size()}});
  out["entries"] = Json::array();
  for (const plan::Entry *entry : *plan.entries())
    out["entries"].push_back({{"name", entry->name()->str()},
                              {"kind", plan::EnumNameEntryKind(entry->kind())},
                              {"rows", entry->rows()},
                              {"segments", entry->segments()},
                              {"logit_rows", entry->logit_rows()},
                              {"stage", entry->stage()},
                              {"streams", entry->streams()},
                              {"commands", entry->commands()->size()}});
  return out;
}

Json memoryJson(const plan::Plan &plan, uint32_t stage) {
  const MemoryTable table = memoryTable(plan, stage);
  Json out;
  out["total"] = table.total;
  for (const plan::Arena *arena : *plan.arenas())
    out["arenas"][arena->name()->str()] = arena->bytes();
  out["reserve"] = plan.reserve();
  for (const MemoryLine &line : table.lines)
    out["lines"][line.name] = line.bytes;
  out["bytes_per_token"] = table.bytesPerToken;
  out["bytes_per_sequence"] = table.bytesPerSequence;
  for (uint32_t other = 1; stage == 0 && other < plan.mesh()->pp(); ++other)
    out["stages"].push_back(memoryJson(plan, other)); // those behind the first
  return out;
}

Json scheduleJson(const plan::Plan &plan, bool collectivesOnly) {
  Json out;
  for (const plan::Entry *entry : *plan.entries()) {
    Json &commands = out[entry->name()->str()] = Json::array();
    for (uint32_t i = 0; i < entry->commands()->size(); ++i) {
      const auto kind = entry->commands_type()->GetEnum<plan::Command>(i);
      const void *table = entry->commands()->Get(i);
      if (collectivesOnly && kind != plan::Command::Collective)
        continue;
      Json command = {{"command", plan::EnumNameCommand(kind)}};
      if (kind == plan::Command::Launch) {
        auto &launch = *static_cast<const plan::Launch *>(table);
        command["kernel"] = plan.kernels()->Get(launch.kernel())->name()->str();
        command["stream"] = launch.stream();
        command["tasks"] = launch.grid_x();
        for (const plan::Slice *arg : *launch.args())
          command["args"].push_back(sliceText(plan, *arg));
        command["label"] = launch.label() ? launch.label()->str() : "";
      } else if (kind == plan::Command::Collective) {
        auto &collective = *static_cast<const plan::Collective *>(table);
        command["op"] = plan::EnumNameCollectiveOp(collective.op());
        command["axis"] = plan::EnumNameMeshAxis(collective.axis());
        command["count"] = collective.count();
        command["dtype"] = plan::EnumNameDType(collective.dtype());
        command["bytes"] = collective.source()->bytes(); // of one rank, the capacity
        command["ranks"] = plan::ranks_along(*plan.mesh(), collective.axis());
        command["transport"] = plan::EnumNameTransport(collective.transport());
        command["stream"] = collective.stream();
        command["label"] = collective.label() ? collective.label()->str() : "";
        if (const plan::Launch *launch = plan::launch_of(*entry, i)) { // goes on with a row op
          command["kernel"] = plan.kernels()->Get(launch->kernel())->name()->str();
          if (!collectivesOnly)
            for (const plan::Slice *arg : *launch->args())
              command["args"].push_back(sliceText(plan, *arg));
        }
      }
      commands.push_back(std::move(command));
    }
  }
  return out;
}

Json kernelsJson(const plan::Plan &plan) {
  Json out = Json::array();
  for (const plan::Kernel *kernel : *plan.kernels())
    out.push_back({{"name", kernel->name()->str()}, {"symbol", kernel->symbol()->str()}, {"config", kernel->config()->str()}});
  return out;
}

Json weightsJson(const plan::Plan &plan) {
  Json out = Json::array();
  const WeightReaders readers(plan);
  for (const plan::WeightStack *stack : *plan.weights())
    out.push_back({{"pattern", stack->pattern()->str()},
                   {"members", stack->offsets()->size()},
                   {"dtype", stack->dtype()->str()},
                   {"shape", std::vector<uint64_t>(stack->shape()->begin(), stack->shape()->end())},
                   {"dest", stack->dest()},
                   {"stride", stack->stride()},
                   {"rows", stack->layout()->row_count()},
                   {"readers", readers.of(*stack)},
                   {"group", {stack->layout()->group(), stack->layout()->group_stride(), stack->layout()->group_begin()}}});
  return out;
}

} // namespace k31::tool
