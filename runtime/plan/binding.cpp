#include "runtime/plan/binding.h"
#include "runtime/base/cat.h"
#include "runtime/base/cpu.h"
#include "runtime/device.h"
#include "runtime/plan/dtype.h"
#include "runtime/plan/peers.h"
#include "runtime/schema/launches.h"
#include <algorithm>
#include <cstring>

namespace k31 {

Result<std::vector<host::Memory>> allocate_arenas(const plan::Plan &plan) {
  uint64_t total = plan.reserve();
  for (const plan::Arena *arena : *plan.arenas())
    if (__builtin_add_overflow(total, arena->bytes(), &total))
      return fail(Code::invalid_input, "the sizes of the arenas do not fit 64 bits; the plan is wrong, compile it again");
  if (const uint64_t limit = host::memory_limit(); total > limit)
    return fail(Code::out_of_memory, cat("the plan needs ", total, " bytes of memory, this machine has ", limit,
                                         "; compile it with a smaller context, batch or layer range"));
  std::vector<host::Memory> arenas;
  for (const plan::Arena *arena : *plan.arenas()) {
    const bool shared = arena->kind() == plan::ArenaKind::shared;
    K31_ASSIGN(host::Memory memory, shared ? host::Memory::allocate_shared(arena->name()->str(), arena->bytes())
                                           : host::Memory::allocate(arena->name()->str(), arena->bytes(), arena->alignment()));
    arenas.push_back(std::move(memory));
  }
  return arenas;
}

void poison_arenas(const plan::Plan &plan, const std::vector<host::Memory> &arenas) {
  for (size_t i = 0; i < arenas.size(); ++i)
    if (const plan::ArenaKind kind = plan.arenas()->Get(i)->kind();
        kind != plan::ArenaKind::weights && kind != plan::ArenaKind::shared) // flags of peers begin as zero
      std::fill(arenas[i].bytes().begin(), arenas[i].bytes().end(), std::byte{0xff});
}

// Features of an image that this processor lacks: "avx512f, avx512bw".
static std::string missing_features(const plan::Image &image) {
  std::string missing;
  for (const flatbuffers::String *feature : *image.features())
    if (!cpu_has(feature->string_view()))
      missing += (missing.empty() ? "" : ", ") + feature->str();
  return missing;
}

Result<HostCode> load_code(const plan::Plan &plan) {
  HostCode code;
  std::vector<std::string> missing;
  for (const plan::Image *image : *plan.images())
    missing.push_back(missing_features(*image));
  for (const plan::Kernel *kernel : *plan.kernels()) {
    const auto fits = [&](uint32_t image) { return missing[image].empty(); };
    const auto chosen = std::find_if(kernel->images()->begin(), kernel->images()->end(), fits);
    if (chosen == kernel->images()->end()) {
      const uint32_t last = kernel->images()->Get(kernel->images()->size() - 1); // the least demanding one
      return fail(Code::unsupported, cat("no image of kernel ", quote(kernel->name()->str()),
                                         " fits this processor: ", quote(plan.images()->Get(last)->target()->str()), " needs ",
                                         missing[last], "; compile the plan for this machine"));
    }
    auto at = code.images.find(*chosen);
    if (at == code.images.end()) {
      const flatbuffers::Vector<uint8_t> &bytes = *plan.images()->Get(*chosen)->code();
      auto image = host::Image::open({bytes.data(), bytes.size()});
      if (!image)
        return context(cat("image ", *chosen), std::move(image.error()));
      at = code.images.emplace(*chosen, std::move(*image)).first;
    }
    auto function = at->second.find(kernel->symbol()->str());
    if (!function)
      return context("kernel " + quote(kernel->name()->str()), std::move(function.error()));
    code.functions.push_back(*function);
  }
  return code;
}

namespace {

// A copy as a kernel of one task; its argument is the step.
void copy_step(const void *args, uint32_t, uint32_t) {
  const Step &step = *static_cast<const Step *>(args);
  memmove(step.dest, step.args, step.bytes);
}

host::Job job_of(const Step &step) {
  if (!step.launch) {
    const auto *from = static_cast<const std::byte *>(step.args);
    auto *to = static_cast<std::byte *>(step.dest);
    return {copy_step, &step, 1, {{from, from + step.bytes, false}, {to, to + step.bytes, true}}};
  }
  host::Job job{step.function, step.args, step.tasks, {}};
  const auto *pointer = static_cast<const std::byte *const *>(step.args);
  for (const plan::Slice *slice : *step.launch->args()) {
    job.touches.push_back({*pointer, *pointer + slice->bytes(), slice->access() != plan::Access::read});
    ++pointer;
  }
  return job;
}

// The schedules point to the steps, which stay where they are from here on.
void schedule(Program &program, int threads) {
  std::vector<host::Job> jobs;
  for (const Step &step : program.steps) {
    if (step.group) {
      program.parts.push_back({host::make_schedule(jobs, threads), &step});
      jobs.clear();
    } else {
      jobs.push_back(job_of(step));
    }
  }
  program.parts.push_back({host::make_schedule(jobs, threads), nullptr});
}

struct Preparer {
  const plan::Plan &plan;
  const HostCode &code;
  const std::vector<host::Memory> &arenas;
  const comm::Communicator &communicator;

  std::byte *address(uint32_t arena, uint64_t offset) const { return arenas[arena].bytes().data() + offset; }
  std::byte *address(const plan::Slice &slice) const { return address(slice.arena(), slice.offset()); }

  void copy(Program &program, const plan::Slice &source, const plan::Slice &dest, uint64_t bytes) const {
    if (bytes > 0 && address(source) != address(dest))
      program.steps.push_back({nullptr, address(source), address(dest), bytes, 0, nullptr});
  }

  void launch(Program &program, const plan::Launch &launch) const {
    program.steps.push_back({code.functions[launch.kernel()], program.pointers.data() + program.pointers.size(), nullptr, 0,
                             launch.grid_x(), &launch});
    for (const plan::Slice *arg : *launch.args())
      program.pointers.push_back(address(*arg));
  }

  Result<void> collective(Program &program, const plan::Entry &entry, const plan::Collective &c) const {
    comm::Group &group = communicator.group(c.axis());
    if (group.size() == 1) {
      K31_ASSIGN(const uint64_t bytes, lone_collective(entry, c));
      copy(program, *c.source(), *c.dest(), bytes);
      return {};
    }
    if (auto good = comm::check_collective(c, group); !good)
      return context("entry " + quote(entry.name()->str()), std::move(good.error()));
    const auto *live = c.live() ? reinterpret_cast<const int32_t *>(address(*c.live())) : nullptr;
    if (by_peer(c, communicator)) {
      const auto &args = *c.launch()->args();
      program.steps.push_back({code.functions[c.launch()->kernel()], program.pointers.data() + program.pointers.size(),
                               address(*args[args.size() - 1]), 0, 0, plan::has_row(c) ? c.launch() : nullptr, &c, &group, live});
      for (const plan::Slice *arg : args)
        program.pointers.push_back(address(*arg));
      return {};
    }
    program.steps.push_back({nullptr, address(*c.source()), address(*c.dest()), 0, 0, nullptr, &c, &group, live});
    return {};
  }

  std::vector<Port> ports(const flatbuffers::Vector<flatbuffers::Offset<plan::Binding>> &bindings) const {
    std::vector<Port> list;
    for (const plan::Binding *binding : bindings) {
      list.push_back({binding->name()->string_view(), address(binding->arena(), binding->offset()), bytes_of(*binding)});
    }
    return list;
  }

  Result<Program> program(const plan::Entry &entry) const {
    Program program;
    program.inputs = ports(*entry.inputs());
    program.outputs = ports(*entry.outputs());
    // Steps point into `pointers`, so it gets its final size before the first of them.
    size_t pointers = 0;
    for (uint32_t i = 0; i < entry.commands()->size(); ++i)
      if (entry.commands_type()->GetEnum<plan::Command>(i) == plan::Command::Launch)
        pointers += entry.commands()->GetAs<plan::Launch>(i)->args()->size();
      else if (entry.commands_type()->GetEnum<plan::Command>(i) == plan::Command::Collective)
        if (const plan::Launch *launch = entry.commands()->GetAs<plan::Collective>(i)->launch())
          pointers += launch->args()->size();
    program.pointers.reserve(pointers);
    for (uint32_t i = 0; i < entry.commands()->size(); ++i)
      switch (entry.commands_type()->GetEnum<plan::Command>(i)) {
      case plan::Command::Launch:
        launch(program, *entry.commands()->GetAs<plan::Launch>(i));
        break;
      case plan::Command::Copy: {
        const plan::Copy &c = *entry.commands()->GetAs<plan::Copy>(i);
        copy(program, *c.source(), *c.dest(), c.source()->bytes());
        break;
      }
      case plan::Command::Collective:
        K31_TRY(collective(program, entry, *entry.commands()->GetAs<plan::Collective>(i)));
        break;
      default:
        break; // Record and Wait: order is given
      }
    return program;
  }
};

} // namespace

void schedule_alone(Program &program, int threads) {
  for (size_t i = program.alone.size(); i < program.steps.size(); ++i) {
    const Step &step = program.steps[i];
    std::vector<host::Job> jobs;
    if (!step.group)
      jobs.push_back(job_of(step));
    program.alone.push_back(host::make_schedule(jobs, threads));
  }
}

Result<std::vector<Program>> prepare(const plan::Plan &plan, const HostCode &code, const std::vector<host::Memory> &arenas,
                                     const comm::Communicator &communicator, int threads) {
  std::vector<Program> programs;
  for (const plan::Entry *entry : *plan.entries()) {
    Program program;
    if (runs_here(*entry, communicator)) {
      K31_ASSIGN(program, (Preparer{plan, code, arenas, communicator}.program(*entry)));
      schedule(program, threads);
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

} // namespace k31
