#include "runtime/cuda/device.h"
#include "runtime/base/cat.h"
#include "runtime/comm/wait.h"
#include "runtime/cuda/mirror.h"
#include "runtime/cuda/nccl.h"
#include "runtime/cuda/peers.h"
#include "runtime/cuda/program.h"
#include "runtime/cuda/staging.h"
#include "runtime/cuda/weights.h"
#include "runtime/plan/peers.h"
#include <algorithm>

namespace k31::cuda {
namespace {

constexpr int kReaders = 8; // of weights; their pinned buffers hold 64 MiB

class CudaDevice : public Device {
public:
  CudaDevice(const Driver &driver, comm::Communicator &communicator)
      : driver(driver), communicator(communicator), kernels(driver) {}

  Result<void> open() {
    int count = 0, major = 0, minor = 0;
    char name[128] = "";
    K31_CUDA(driver, device_count(&count), "the CUDA driver does not tell its GPUs");
    if (count == 0)
      return fail(Code::unsupported,
                  "the plan is for target sm_90a, but NVIDIA's driver shows no GPU; run it on a machine with a "
                  "GPU of the H100 or H200 kind, or compile the plan with --target cpu");
    // One process a GPU: the ranks of a host take them in turn.
    const uint32_t local = communicator.world().local_rank(), ranks = communicator.world().local_size();
    if (ranks > uint32_t(count) && ranks > 1)
      return fail(Code::unsupported, cat("the plan has ", ranks, " ranks on this host, but NVIDIA's driver shows ", count,
                                         count == 1 ? " GPU" : " GPUs", "; every rank needs one of its own"));
    const std::string which = cat("GPU ", local);
    K31_CUDA(driver, device_get(&number, int(local)), which + " cannot be used");
    K31_CUDA(driver, device_name(name, sizeof name, number), which + " cannot be used");
    K31_CUDA(driver, device_attribute(&major, kCapabilityMajor, number), which + " cannot be used");
    K31_CUDA(driver, device_attribute(&minor, kCapabilityMinor, number), which + " cannot be used");
    if (major != 9 || minor != 0)
      return fail(Code::unsupported, cat("the plan is for target sm_90a, but ", which, ", ", quote(name), ", is of kind sm_",
                                         major, minor, "; choose a GPU of the H100 or H200 kind with CUDA_VISIBLE_DEVICES"));
    K31_CUDA(driver, context_retain(&context, number), cat("GPU ", quote(name), " gives no context"));
    return use();
  }

  ~CudaDevice() override {
    if (!context)
      return;
    driver.context_set(context);
    programs.clear(); // graphs go before the communicators whose collectives they hold
    nccl.reset();
    const bool shown = peers && peers->any();
    peers.reset();
    if (shown && sound) // memory is freed when nobody has it mapped
      (void)communicator.all().all_gather({}, {});
    for (Event event : {launch_begin, launch_end})
      if (event)
        driver.event_destroy(event);
    for (Stream stream : streams)
      driver.stream_destroy(stream);
  }

  Result<void> allocate(const plan::Plan &plan, bool poison) override {
    K31_TRY(use());
    K31_TRY(check_memory(plan));
    of = &plan;
    uint32_t most = 1;
    for (const plan::Entry *entry : *plan.entries())
      most = std::max(most, entry->streams());
    while (streams.size() < most) {
      Stream stream = nullptr;
      K31_CUDA(driver, stream_create(&stream, kNonBlocking), "cannot create a stream");
      streams.push_back(stream);
    }
    for (const plan::Arena *arena : *plan.arenas()) {
      K31_ASSIGN(Memory memory, Memory::allocate(driver, arena->name()->str(), arena->bytes(), arena->alignment()));
      const bool shared = arena->kind() == plan::ArenaKind::shared; // flags of peers begin as zero
      if (arena->kind() != plan::ArenaKind::weights && memory.bytes() > 0)
        K31_CUDA(driver, fill(memory.address(), poison && !shared ? 0xff : 0, memory.bytes(), streams[0]),
                 "cannot clear device memory");
      arenas.push_back(std::move(memory));
    }
    K31_CUDA(driver, stream_synchronize(streams[0]), "cannot clear device memory");
    return staging.allocate(driver, plan, arenas);
  }

  Result<void> load_code(const plan::Plan &plan) override {
    K31_TRY(use());
    return kernels.load(plan, plan.key()->target()->string_view());
  }

  Result<void> prepare(const plan::Plan &plan) override {
    K31_TRY(use());
    K31_ASSIGN(peers, Peers::connect(driver, plan, arenas, communicator, streams[0]));
    if (communicator.size() > 1 && !communicator.world().alone() && needs_library(plan)) {
      K31_ASSIGN(nccl, Nccl::open(driver, communicator, *plan.mesh(), streams[0]));
    }
    for (const plan::Entry *entry : *plan.entries()) {
      programs.push_back(std::make_unique<Program>(driver, plan, *entry, kernels, arenas, streams, communicator, nccl.get()));
      if (!runs_here(*entry, communicator)) {
        programs.back()->inputs.clear(), programs.back()->outputs.clear();
        continue;
      }
      K31_TRY(programs.back()->capture());
    }
    return {};
  }

  Result<void> load_weights(const plan::Plan &plan, const BindOptions &options) override {
    const auto make = [this] { return make_sink(driver, context, arenas); };
    K31_ASSIGN(const std::unique_ptr<weights::Source> source,
               weights::open_source(plan, options.weights, options.synthetic, options.skewed_routing));
    return weights::load(plan, {*plan.mesh(), communicator.rank()}, *source, make, kReaders, options.progress);
  }

  size_t entries() const override { return programs.size(); }
  const std::vector<Port> &inputs(uint32_t entry) const override { return programs[entry]->inputs; }
  const std::vector<Port> &outputs(uint32_t entry) const override { return programs[entry]->outputs; }

  Result<void> run(uint32_t entry, std::span<const Upload> inputs, std::span<const Download> outputs) override {
    K31_TRY(use());
    K31_TRY(staging.upload(driver, inputs, streams[0]));
    K31_TRY(programs[entry]->replay());
    return take(outputs);
  }

  Result<void> run_observed(uint32_t entry, std::span<const Upload> inputs, std::span<const Download> outputs,
                            const Observers &observers) override {
    K31_TRY(use());
    if (!mirror.reserved())
      K31_TRY(mirror.reserve(driver, *of, arenas));
    for (Event *event : {&launch_begin, &launch_end})
      if (!*event)
        K31_CUDA(driver, event_create(event, 0), "cannot create an event");
    K31_TRY(staging.upload(driver, inputs, streams[0]));
    const auto before = [&](const plan::Launch &launch) -> Result<void> {
      Result<void> result;
      if (!observers.before)
        return result;
      const auto args = mirror.take(launch, observers.shown, streams[0], result);
      if (!result)
        return result;
      observers.before(launch, args);
      return mirror.give_back(launch, observers.shown, streams[0]);
    };
    const auto after = [&](const plan::Launch &launch) -> Result<void> {
      Result<void> result;
      float milliseconds = 0;
      K31_CUDA(driver, event_elapsed(&milliseconds, launch_begin, launch_end), "a launch cannot be timed");
      last_launch = double(milliseconds) / 1000;
      if (!observers.after)
        return result;
      const auto args = mirror.take(launch, observers.shown, streams[0], result);
      if (result)
        observers.after(launch, args);
      return result;
    };
    K31_TRY(programs[entry]->step(before, after, launch_begin, launch_end));
    return take(outputs);
  }

  Result<void> read(uint32_t arena, uint64_t offset, std::span<std::byte> to) override {
    K31_ASSIGN(const Address at, range(arena, offset, to.size()));
    if (!to.empty())
      K31_CUDA(driver, copy_out(to.data(), at, to.size(), streams[0]), "cannot read device memory");
    return wait();
  }
  Result<void> write(uint32_t arena, uint64_t offset, std::span<const std::byte> from) override {
    K31_ASSIGN(const Address at, range(arena, offset, from.size()));
    if (!from.empty())
      K31_CUDA(driver, copy_in(at, from.data(), from.size(), streams[0]), "cannot write device memory");
    return wait();
  }
  Result<void> copy(uint32_t arena, uint64_t from, uint64_t to, uint64_t bytes) override {
    K31_ASSIGN(const Address source, range(arena, from, bytes));
    K31_ASSIGN(const Address dest, range(arena, to, bytes));
    if (bytes)
      K31_CUDA(driver, copy(dest, source, bytes, streams[0]), "cannot copy device memory");
    return wait();
  }
  Result<void> fill(uint32_t arena, uint64_t offset, uint64_t bytes, std::byte value) override {
    K31_ASSIGN(const Address at, range(arena, offset, bytes));
    if (bytes)
      K31_CUDA(driver, fill(at, static_cast<unsigned char>(value), bytes, streams[0]), "cannot fill device memory");
    return wait();
  }

  std::optional<double> launch_seconds() const override { return last_launch; }

private:
  // The address of a range of an arena, with the context current on this thread.
  Result<Address> range(uint32_t arena, uint64_t offset, uint64_t bytes) {
    K31_TRY(check_range(arena, offset, bytes, arena < arenas.size() ? arenas[arena].bytes() : 0));
    K31_TRY(use());
    return arenas[arena].address() + offset;
  }
  Result<void> wait() {
    K31_CUDA(driver, stream_synchronize(streams[0]), "device memory cannot be read or written");
    return {};
  }

  // Makes the context current on this thread; every call of the session may come from another one.
  Result<void> use() {
    K31_CUDA(driver, context_set(context), "the GPU cannot be used on this thread");
    return {};
  }

  Result<void> take(std::span<const Download> outputs) {
    sound = false;
    K31_TRY(staging.download(driver, outputs, streams[0]));
    if (nccl || peers->any())
      K31_TRY(wait_for_ranks());
    K31_CUDA(driver, stream_synchronize(streams[0]), "the run failed on the GPU");
    staging.finish(outputs);
    sound = true;
    return {};
  }

  // Looks for errors of communicators now and then, which do not end what waits on the GPU.
  Result<void> wait_for_ranks() {
    auto asked = std::chrono::steady_clock::now();
    return comm::wait_until([&]() -> Result<bool> {
      const Status status = driver.stream_query(streams[0]);
      if (const auto now = std::chrono::steady_clock::now(); now - asked > std::chrono::seconds(1)) {
        asked = now;
        if (nccl)
          K31_TRY(nccl->check());
      }
      return status != kNotReady; // errors are the caller's
    });
  }

  Result<void> check_memory(const plan::Plan &plan) {
    uint64_t arenas_bytes = 0;
    for (const plan::Arena *arena : *plan.arenas())
      arenas_bytes += arena->bytes(); // each is below 2^47, checked at Load
    size_t free = 0, total = 0;
    K31_CUDA(driver, memory_info(&free, &total), "the GPU does not tell its memory");
    if (arenas_bytes > free)
      return fail(Code::out_of_memory,
                  cat("the plan needs ", arenas_bytes, " bytes of device memory, the GPU has ", free, " of ", total,
                      " free; compile it with a smaller context, batch or layer range, or end what else runs there"));
    return {};
  }

  // Releases the context after the members below it, which still need it.
  struct Retained {
    const Driver &driver;
    const Context &context;
    const int &number;
    ~Retained() {
      if (context)
        driver.context_release(number);
    }
  };

  const Driver &driver;
  comm::Communicator &communicator;
  int number = 0;
  Context context = nullptr;
  Retained retained{driver, context, number};
  std::vector<Memory> arenas; // in the order of the plan
  Staging staging;
  Kernels kernels;
  std::vector<Stream> streams; // the first one runs
  std::unique_ptr<Peers> peers;
  std::unique_ptr<Nccl> nccl; // of several ranks, where the plan needs it
  bool sound = false;         // the last run ended well
  std::vector<std::unique_ptr<Program>> programs;

  // Observed runs.
  const plan::Plan *of = nullptr;
  Mirror mirror;
  Event launch_begin = nullptr, launch_end = nullptr;
  std::optional<double> last_launch;
};

} // namespace

Result<std::unique_ptr<Device>> open_device(comm::Communicator &communicator) {
  K31_ASSIGN(const Driver *driver, open_driver());
  auto device = std::make_unique<CudaDevice>(*driver, communicator);
  K31_TRY(device->open());
  return device;
}

} // namespace k31::cuda
