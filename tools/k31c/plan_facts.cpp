#include "tools/k31c/plan_facts.h"
#include "compiler/Plan/MemoryTable.h"
#include "runtime/base/cat.h"
#include "runtime/base/hash.h"
#include "runtime/schema/launches.h"
#include "tools/k31c/plan_text.h"
#include "llvm/Object/ELFObjectFile.h"

namespace k31::tool {
namespace {

template <class List> std::string joined(const List &list, const char *between) {
  std::string out;
  for (const auto &value : list)
    out += cat(out.empty() ? "" : between, value);
  return out;
}

// The fields of a Config as text: "rows = 8, sums = [1, 0]".
Fields configFields(std::string_view config) {
  Fields fields;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= config.size(); ++i) {
    if (i < config.size())
      depth += (config[i] == '[') - (config[i] == ']');
    if (i == config.size() || (depth == 0 && (config.substr(i, 2) == ", " || config.substr(i, 2) == "; "))) {
      if (i > begin)
        fields.emplace_back(config.substr(begin, i - begin));
      begin = i + 2;
    }
  }
  return fields;
}

FactGroup key(const plan::Plan &plan) {
  const plan::Key &key = *plan.key();
  return {"key",
          {{"compiler", {key.compiler()->str()}},
           {"target", {key.target()->str()}},
           {"checkpoint", {key.checkpoint()->str()}},
           {"format", {versionText(plan)}}}};
}

FactGroup options(const plan::Plan &plan) {
  FactGroup group{"options", {}};
  for (const plan::Option *option : *plan.key()->options())
    group.facts[option->name()->str()] = {option->value()->str()};
  return group;
}

FactGroup model(const plan::Plan &plan) {
  const plan::Model &m = *plan.model();
  const auto number = [](uint64_t value) { return Fields{std::to_string(value)}; };
  return {"model",
          {{"family", {m.family()->str()}},
           {"layers", {cat(m.layer_begin(), " to ", m.layer_end(), " of ", m.layers())}},
           {"hidden", number(m.hidden())},
           {"vocab", number(m.vocab())},
           {"context", number(m.max_context())},
           {"batch", number(m.max_batch())},
           {"activations", {plan::EnumNameDType(m.activations())}},
           {"eos", {m.eos() ? joined(*m.eos(), " ") : ""}}}};
}

FactGroup mesh(const plan::Plan &plan) { return {"mesh", {{"ranks", {meshText(plan)}}}}; }

FactGroup memory(const plan::Plan &plan) {
  FactGroup group{"memory", {}};
  for (uint32_t stage = 0; stage < plan.mesh()->pp(); ++stage) {
    const std::string of = plan.mesh()->pp() > 1 ? cat("stage ", stage, ", ") : "";
    const MemoryTable table = memoryTable(plan, stage);
    for (const MemoryLine &line : table.lines)
      group.facts[of + line.name] = {cat(line.bytes, " bytes")};
    group.facts[of + "total"] = {cat(table.total, " bytes")};
  }
  return group;
}

FactGroup files(const plan::Plan &plan) {
  FactGroup group{"files", {}};
  for (const plan::CheckpointFile *file : *plan.files())
    group.facts[file->name()->str()] = {cat(file->bytes(), " bytes")};
  return group;
}

FactGroup weights(const plan::Plan &plan) {
  FactGroup group{"weights", {}};
  for (const plan::WeightStack *stack : *plan.weights()) {
    const plan::Layout &l = *stack->layout();
    std::string shape = joined(*stack->shape(), " x ");
    const std::string places = joined(*stack->files(), ",") + ":" + joined(*stack->offsets(), ",");
    Fields fields{cat(stack->dtype()->str(), " ", shape),
                  plural(stack->offsets()->size(), "member"),
                  cat("numbers ", stack->members() ? joined(*stack->members(), " ") : ""),
                  cat("every ", stack->stride(), " bytes"),
                  cat("rows ", l.row_begin(), " +", l.row_count(), ", bytes ", l.byte_begin(), " +", l.byte_count(), ", pitch ",
                      l.dest_row_bytes(), ", group ", l.group(), " ", l.group_stride(), " ", l.group_begin()),
                  cat("in the files ", hex(hash128(std::as_bytes(std::span(places)))).substr(0, 12))};
    if (stack->shard())
      fields.push_back(
          cat("shard ", plan::EnumNameMeshAxis(stack->shard()->axis()), " ", plan::EnumNameShardOf(stack->shard()->of())));
    if (plan.mesh()->pp() > 1)
      fields.push_back(cat("stage ", stack->stage()));
    std::string name = stack->pattern()->str();
    while (group.facts.contains(name)) // another part of the same tensors
      name += "'";
    group.facts[name] = std::move(fields);
  }
  return group;
}

FactGroup state(const plan::Plan &plan) {
  const plan::StateGroup &s = *plan.state();
  FactGroup group{"state",
                  {{"blocks", {cat(s.blocks(), " of ", s.block_tokens(), " tokens")}}, {"slots", {std::to_string(s.slots())}}}};
  std::map<std::string, std::map<std::string, std::vector<uint32_t>>> layers; // by kind and size
  for (const plan::StateMember *member : *s.members())
    layers[plan::EnumNameStateKind(member->kind())][cat(member->units(), " x ", member->unit_bytes(), " bytes",
                                                        member->codes() ? cat(", rows of ", member->codes(), " codes") : "")]
        .push_back(member->layer());
  for (const auto &[kind, sizes] : layers)
    for (const auto &[size, numbers] : sizes)
      group.facts[kind].push_back(cat(size, " in ", layersText(numbers)));
  return group;
}

// Bytes of code by symbol, as the image's symbol table says.
std::map<std::string, uint64_t> codeSizes(const plan::Image &image) {
  std::map<std::string, uint64_t> sizes;
  const llvm::StringRef bytes(reinterpret_cast<const char *>(image.code()->data()), image.code()->size());
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "image"));
  if (!file) { // golden plans of tests hold no code
    llvm::consumeError(file.takeError());
    return sizes;
  }
  for (const llvm::object::ELFSymbolRef symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**file).getDynamicSymbolIterators())
    if (auto name = symbol.getName())
      sizes[name->str()] = symbol.getSize();
    else
      llvm::consumeError(name.takeError());
  return sizes;
}

// Images that hold many kernels; a kernel's own image is told with the kernel.
FactGroup images(const plan::Plan &plan) {
  FactGroup group{"images", {}};
  if (plan.key()->target()->string_view() == "cpu")
    for (const plan::Image *image : *plan.images())
      group.facts[image->target()->str()] = {
          cat(image->code()->size(), " bytes"),
          cat("hash ", hex(hash128(std::as_bytes(std::span(image->code()->data(), image->code()->size())))).substr(0, 12))};
  return group;
}

// By content: the symbol is a hash of source, Config and region.
FactGroup kernels(const plan::Plan &plan) {
  FactGroup group{"kernels", {}};
  std::vector<std::map<std::string, uint64_t>> sizes;
  for (const plan::Image *image : *plan.images())
    sizes.push_back(codeSizes(*image));
  for (const plan::Kernel *kernel : *plan.kernels()) {
    Fields &fields = group.facts[cat(kernel->name()->str(), " ", kernel->symbol()->str())];
    fields = configFields(kernel->config()->string_view());
    for (uint32_t image : *kernel->images())
      if (const auto found = sizes[image].find(kernel->symbol()->str()); found != sizes[image].end())
        fields.push_back(cat(found->second, " bytes of ", plan.images()->Get(image)->target()->str()));
  }
  return group;
}

FactGroup entriesOf(const plan::Plan &plan) {
  FactGroup group{"entries", {}};
  for (const plan::Entry *entry : *plan.entries())
    group.facts[entry->name()->str()] = {plan::EnumNameEntryKind(entry->kind()),       plural(entry->rows(), "row"),
                                         plural(entry->segments(), "segment"),         plural(entry->logit_rows(), "logit row"),
                                         plural(entry->commands()->size(), "command"), plural(entry->streams(), "stream")};
  return group;
}

// One fact a command: which kernel, how split, where. Addresses move with every change of memory and are left out.
FactGroup commands(const plan::Plan &plan, const std::set<std::string> &entries) {
  FactGroup group{"commands", {}};
  for (const plan::Entry *entry : *plan.entries()) {
    if (!entries.contains(entry->name()->str()))
      continue;
    std::map<std::string, int> seen;
    const auto add = [&](const flatbuffers::String *label, const char *kind, Fields fields) {
      std::string name = entry->name()->str() + " " + (label && label->size() ? label->str() : kind);
      if (const int number = ++seen[name]; number > 1)
        name += cat(" #", number);
      group.facts[name] = std::move(fields);
    };
    for (uint32_t i = 0; i < entry->commands()->size(); ++i) {
      const void *table = entry->commands()->Get(i);
      switch (entry->commands_type()->GetEnum<plan::Command>(i)) {
      case plan::Command::Launch: {
        const auto &launch = *static_cast<const plan::Launch *>(table);
        const plan::Kernel &kernel = *plan.kernels()->Get(launch.kernel());
        Fields fields = configFields(kernel.config()->string_view());
        fields.insert(fields.begin(), kernel.name()->str());
        fields.push_back(splitText(plan, launch));
        fields.push_back(cat("stream ", launch.stream()));
        fields.push_back(kernel.symbol()->str());
        add(launch.label(), "launch", std::move(fields));
        break;
      }
      case plan::Command::Collective: {
        const auto &c = *static_cast<const plan::Collective *>(table);
        Fields fields{cat(plan::EnumNameCollectiveOp(c.op()), " over ", plan::EnumNameMeshAxis(c.axis())),
                      cat("by ", plan::EnumNameTransport(c.transport())), cat(c.count(), " x ", plan::EnumNameDType(c.dtype())),
                      cat("peer ", c.peer()), cat("stream ", c.stream())};
        if (plan::has_row(c)) {
          const plan::Kernel &kernel = *plan.kernels()->Get(c.launch()->kernel());
          fields.push_back(kernel.name()->str()), fields.push_back(kernel.symbol()->str());
        }
        add(c.label(), "collective", std::move(fields));
        break;
      }
      case plan::Command::Copy: {
        const auto &copy = *static_cast<const plan::Copy *>(table);
        add(copy.label(), "copy", {cat(copy.source()->bytes(), " bytes"), cat("stream ", copy.stream())});
        break;
      }
      default: // order: what it holds apart shows in the streams
        break;
      }
    }
  }
  return group;
}

} // namespace

std::vector<FactGroup> factsOf(const plan::Plan &plan, const std::set<std::string> &entries) {
  return {options(plan), key(plan),   model(plan),  mesh(plan),    memory(plan),    files(plan),
          weights(plan), state(plan), images(plan), kernels(plan), entriesOf(plan), commands(plan, entries)};
}

} // namespace k31::tool
