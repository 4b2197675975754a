#include "runtime/session.h"
#include "runtime/base/cat.h"
#include "runtime/base/cpu.h"
#include "runtime/comm/alone.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/wait.h"
#include "runtime/device.h"
#include "runtime/plan/plan_file.h"
#include "runtime/weights/verify.h"
#include <algorithm>
#include <array>

namespace k31 {

// Inputs, and outputs, of one run; Load allows an entry as many.
static constexpr size_t kMaxTensors = 64;

// Seconds that a collective of a run waits at most for another rank.
static constexpr int kWaitLimit = 300;

struct Session::Impl {
  explicit Impl(PlanFile file) : file(std::move(file)) {}
  PlanFile file; // outlives the device, which points into it
  comm::AloneWorld alone{0, 1};
  std::unique_ptr<comm::Communicator> communicator; // outlives the device
  std::unique_ptr<Device> device;                   // of a bound session
  Observers observers;
  bool check_launches = false;
};

Session::Session() = default;
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::load(const std::string &plan_path) {
  K31_ASSIGN(PlanFile file, PlanFile::open(plan_path));
  std::unique_ptr<Session> session(new Session);
  session->impl = std::make_unique<Impl>(std::move(file));
  return session;
}

const plan::Plan &Session::plan() const { return impl->file.plan(); }

Result<void> Session::bind(const BindOptions &options) {
  if (impl->device)
    return fail(Code::invalid_input, "the session is bound already; load the plan again to bind it anew");
  if (options.threads < 0 || options.threads > 4096)
    return fail(Code::invalid_input, cat(options.threads, " threads, expected 0 (all cores) to 4096"));
  comm::World &world = options.world ? *options.world : impl->alone;
  const int threads = options.threads > 0 ? options.threads : std::max(1, cpu_threads() / int(world.local_size()));

  comm::wait_limit = 0; // until all ranks have their weights, whatever was bound before
  // What is cheap and can be refused comes first; the weights, which take minutes, last.
  K31_ASSIGN(std::unique_ptr<comm::Communicator> communicator,
             comm::Communicator::make(world, *plan().mesh(), impl->file.hash()));
  K31_ASSIGN(std::unique_ptr<Device> device, open_device(plan(), threads, *communicator));
  if (!options.synthetic)
    K31_TRY(weights::verify(plan(), options.weights));
  K31_TRY(device->load_code(plan()));
  K31_TRY(device->allocate(plan(), options.poison));
  K31_TRY(device->prepare(plan()));
  K31_TRY(device->load_weights(plan(), options));
  K31_TRY(communicator->all().all_gather({}, {})); // all have their weights: from here on ranks wait for each other briefly
  comm::wait_limit = kWaitLimit;
  impl->communicator = std::move(communicator);
  impl->device = std::move(device);
  impl->check_launches = options.check_launches;
  return {};
}

static const Port *find(const std::vector<Port> &ports, std::string_view name) {
  for (const Port &port : ports)
    if (port.name == name)
      return &port;
  return nullptr;
}

// The port of a named tensor of the request; fails on an unknown name or too many bytes.
static Result<const Port *> check_port(const std::vector<Port> &ports, const char *side, const char *name, size_t bytes) {
  const Port *port = find(ports, name);
  if (port && bytes <= port->bytes)
    return port;
  if (port)
    return fail(Code::invalid_input,
                cat(side, " ", quote(name), " has ", bytes, " bytes, the entry holds at most ", port->bytes));
  std::string known;
  for (const Port &p : ports)
    known += (known.empty() ? "" : ", ") + std::string(p.name);
  return fail(Code::invalid_input, cat("the entry has no ", side, " ", quote(name), ", it has: ", known));
}

Result<void> Session::run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) {
  if (!impl->device)
    return fail(Code::invalid_input, "the session is not bound; call bind() before run()");
  Device &device = *impl->device;
  if (entry >= device.entries())
    return fail(Code::not_found, cat("entry ", entry, ", the plan has ", device.entries()));
  if (inputs.size() > kMaxTensors || outputs.size() > kMaxTensors)
    return fail(Code::invalid_input,
                cat(inputs.size(), " inputs and ", outputs.size(), " outputs, expected at most ", kMaxTensors));
  // All names and sizes before the first byte is copied: a refused run changes nothing.
  std::array<Upload, kMaxTensors + 1> uploads;
  std::array<Download, kMaxTensors> downloads;
  size_t in = 0, out = 0;
  for (const NamedInput &input : inputs) {
    K31_ASSIGN(const Port *port, check_port(device.inputs(entry), "input", input.name, input.bytes.size()));
    if (!input.bytes.empty())
      uploads[in++] = {port, input.bytes};
  }
  if (const Port *port = find(device.inputs(entry), "coordinates"))
    uploads[in++] = {port, std::as_bytes(std::span(impl->communicator->coordinates()))};
  for (const NamedOutput &output : outputs) {
    K31_ASSIGN(const Port *port, check_port(device.outputs(entry), "output", output.name, output.bytes.size()));
    if (!output.bytes.empty())
      downloads[out++] = {port, output.bytes};
  }
  const std::span<const Upload> up(uploads.data(), in);
  const std::span<const Download> down(downloads.data(), out);
  const bool observed = impl->check_launches || impl->observers.after || impl->observers.before;
  return observed ? device.run_observed(entry, up, down, impl->observers) : device.run(entry, up, down);
}

comm::Communicator *Session::communicator() const { return impl->communicator.get(); }

void Session::observe(Observer after, Observer before, Shown shown) {
  impl->observers = {std::move(after), std::move(before), shown};
}

std::optional<double> Session::launch_seconds() const { return impl->device ? impl->device->launch_seconds() : std::nullopt; }

const comm::TrafficTable *Session::traffic() const { return impl->device ? impl->device->traffic() : nullptr; }

ArenaAccess *Session::memory() { return impl->device.get(); }

std::span<std::byte> Session::arena(uint32_t index) { return impl->device ? impl->device->arena(index) : std::span<std::byte>(); }

} // namespace k31
