#include "runtime/host/device.h"
#include "runtime/comm/wait.h"
#include "runtime/host/peers.h"
#include "runtime/host/thread_pool.h"
#include "runtime/plan/binding.h"
#include "runtime/schema/peers.h"
#include "runtime/weights/loader.h"
#include <cstring>

namespace k31::host {
namespace {

// Weights are read straight into place where rows stay together.
class HostSink : public weights::Sink {
public:
  explicit HostSink(const std::vector<Memory> &arenas) : arenas(arenas) {}

  std::byte *direct(uint32_t arena, uint64_t offset) override { return arenas[arena].bytes().data() + offset; }
  Result<std::span<std::byte>> buffer() override {
    memory.resize(weights::kBuffer);
    return std::span(memory);
  }
  Result<void> place(const weights::Layout &layout, uint64_t row, uint64_t count, uint32_t arena, uint64_t member) override {
    weights::place_rows(layout, row, count, memory.data(), direct(arena, member));
    return {};
  }
  Result<void> put(uint64_t bytes, uint32_t arena, uint64_t offset) override {
    memcpy(direct(arena, offset), memory.data(), bytes);
    return {};
  }
  Result<void> finish() override { return {}; }

private:
  const std::vector<Memory> &arenas;
  std::vector<std::byte> memory;
};

class HostDevice : public Device {
public:
  HostDevice(int threads, comm::Communicator &communicator) : threads(threads), communicator(communicator) {}

  Result<void> allocate(const plan::Plan &plan, bool poison) override {
    K31_ASSIGN(arenas, allocate_arenas(plan));
    if (poison)
      poison_arenas(plan, arenas);
    return {};
  }
  Result<void> load_code(const plan::Plan &plan) override {
    K31_ASSIGN(code, k31::load_code(plan));
    return {};
  }
  Result<void> prepare(const plan::Plan &plan) override {
    scratch.resize(communicator.size() > 1 ? comm::kScratch : 0);
    K31_TRY(peers.connect(plan, arenas, communicator));
    K31_ASSIGN(programs, k31::prepare(plan, code, arenas, communicator, threads));
    return {};
  }
  Result<void> load_weights(const plan::Plan &plan, const BindOptions &options) override {
    const auto make = [this]() -> Result<std::unique_ptr<weights::Sink>> { return std::make_unique<HostSink>(arenas); };
    K31_ASSIGN(const std::unique_ptr<weights::Source> source,
               weights::open_source(plan, options.weights, options.synthetic, options.skewed_routing));
    K31_TRY(weights::load(plan, {*plan.mesh(), communicator.rank()}, *source, make, threads, options.progress));
    K31_ASSIGN(pool, ThreadPool::start(threads));
    return {};
  }

  size_t entries() const override { return programs.size(); }
  const std::vector<Port> &inputs(uint32_t entry) const override { return programs[entry].inputs; }
  const std::vector<Port> &outputs(uint32_t entry) const override { return programs[entry].outputs; }

  Result<void> run(uint32_t entry, std::span<const Upload> inputs, std::span<const Download> outputs) override {
    copy_in(inputs);
    for (const Part &part : programs[entry].parts) {
      pool->run(part.schedule);
      if (part.then)
        K31_TRY(perform(*part.then));
    }
    copy_out(outputs);
    return {};
  }

  Result<void> run_observed(uint32_t entry, std::span<const Upload> inputs, std::span<const Download> outputs,
                            const Observers &observers) override {
    copy_in(inputs);
    std::vector<std::span<const std::byte>> args;
    Program &program = programs[entry];
    schedule_alone(program, threads);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step &step = program.steps[i];
      args.clear();
      const auto *pointers = static_cast<const std::byte *const *>(step.args);
      if (step.launch)
        for (const plan::Slice *slice : *step.launch->args())
          args.emplace_back(pointers[args.size()], slice->bytes());
      if (step.launch && observers.before)
        observers.before(*step.launch, args);
      if (step.group)
        K31_TRY(perform(step));
      else
        pool->run(program.alone[i]);
      if (step.launch && observers.after)
        observers.after(*step.launch, args);
    }
    copy_out(outputs);
    return {};
  }

  Result<void> read(uint32_t index, uint64_t offset, std::span<std::byte> to) override {
    K31_TRY(check(index, offset, to.size()));
    if (!to.empty())
      memcpy(to.data(), arena(index).data() + offset, to.size());
    return {};
  }
  Result<void> write(uint32_t index, uint64_t offset, std::span<const std::byte> from) override {
    K31_TRY(check(index, offset, from.size()));
    if (!from.empty())
      memcpy(arena(index).data() + offset, from.data(), from.size());
    return {};
  }
  Result<void> copy(uint32_t index, uint64_t from, uint64_t to, uint64_t bytes) override {
    K31_TRY(check(index, from, bytes));
    K31_TRY(check(index, to, bytes));
    if (bytes)
      memcpy(arena(index).data() + to, arena(index).data() + from, bytes);
    return {};
  }
  Result<void> fill(uint32_t index, uint64_t offset, uint64_t bytes, std::byte value) override {
    K31_TRY(check(index, offset, bytes));
    if (bytes)
      memset(arena(index).data() + offset, int(value), bytes);
    return {};
  }

  const comm::TrafficTable *traffic() const override { return &counted; }

  std::span<std::byte> arena(uint32_t index) override {
    return index < arenas.size() ? arenas[index].bytes() : std::span<std::byte>();
  }

private:
  Result<void> perform(const Step &step) {
    comm::Traffic &traffic = counted.at(step.collective->op(), step.collective->axis());
    if (step.function) { // every rank runs it
      count_peers(step, traffic);
      step.function(step.args, 0, 1);
      return static_cast<const plan::PeerTable *>(step.dest)->failed ? comm::waited_too_long() : Result<void>();
    }
    const comm::Operands operands{static_cast<const std::byte *>(step.args), static_cast<std::byte *>(step.dest), step.live};
    return comm::perform(*step.collective, *step.group, operands, scratch, traffic);
  }
  // What a kernel writes to its peers, which are on this host. How long sums travel is its own choice: those are not counted.
  static void count_peers(const Step &step, comm::Traffic &traffic) {
    const plan::Collective &c = *step.collective;
    const uint64_t bytes = c.source()->bytes(), ranks = step.group->size();
    ++traffic.calls;
    for (uint32_t r = 0; r < ranks; ++r)
      if (r == step.group->rank())
        continue;
      else if (step.live)
        traffic.add(false, bytes / ranks, uint64_t(step.live[r]) * c.live_unit());
      else if (c.op() == plan::CollectiveOp::all_gather)
        traffic.add(false, bytes, bytes);
      else if (c.op() == plan::CollectiveOp::reduce_scatter)
        traffic.add(false, bytes / ranks, bytes / ranks);
  }
  Result<void> check(uint32_t index, uint64_t offset, uint64_t bytes) {
    return check_range(index, offset, bytes, arena(index).size());
  }
  static void copy_in(std::span<const Upload> inputs) {
    for (const auto &[port, bytes] : inputs)
      memcpy(port->data, bytes.data(), bytes.size());
  }
  static void copy_out(std::span<const Download> outputs) {
    for (const auto &[port, bytes] : outputs)
      memcpy(bytes.data(), port->data, bytes.size());
  }

  int threads;
  comm::Communicator &communicator;
  std::vector<std::byte> scratch; // of collectives
  comm::TrafficTable counted;
  std::vector<Memory> arenas;
  Peers peers;
  HostCode code;
  std::vector<Program> programs;
  std::unique_ptr<ThreadPool> pool; // last: its workers look at schedules until they have ended
};

} // namespace

Result<std::unique_ptr<Device>> open_device(int threads, comm::Communicator &communicator) {
  return std::make_unique<HostDevice>(threads, communicator);
}

} // namespace k31::host
