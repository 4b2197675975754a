#include "runtime/session.h"
#include "runtime/base/cat.h"
#include "runtime/base/cpu.h"
#include "runtime/plan/binding.h"
#include "runtime/plan/plan_file.h"
#include "runtime/weights/loader.h"
#include "runtime/weights/verify.h"

namespace k31 {

// What Bind makes; a session that failed to bind has none of it.
struct Bound {
  std::vector<host::Memory> arenas;
  HostCode code;
  std::vector<Program> programs;
  std::unique_ptr<host::ThreadPool> pool;
};

struct Session::Impl {
  explicit Impl(PlanFile file) : file(std::move(file)) {}
  PlanFile file;
  std::unique_ptr<Bound> bound;
  Observer observer;
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
  if (impl->bound)
    return fail(Code::invalid_input, "the session is bound already; load the plan again to bind it anew");
  if (options.threads < 0 || options.threads > 4096)
    return fail(Code::invalid_input, cat(options.threads, " threads, expected 0 (all cores) to 4096"));
  const int threads = options.threads > 0 ? options.threads : cpu_threads();

  // What is cheap and can be refused comes first; the weights, which take minutes, last.
  K31_TRY(check_runnable(plan()));
  K31_TRY(weights::verify(plan(), options.weights));
  auto bound = std::make_unique<Bound>();
  K31_ASSIGN(bound->code, load_code(plan()));
  K31_ASSIGN(bound->arenas, allocate_arenas(plan()));
  K31_ASSIGN(bound->programs, prepare(plan(), bound->code, bound->arenas));
  if (options.poison)
    poison_arenas(plan(), bound->arenas);
  K31_TRY(weights::load(plan(), options.weights, bound->arenas, threads, options.progress));
  K31_ASSIGN(bound->pool, host::ThreadPool::start(threads));
  impl->bound = std::move(bound);
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

// As execute(), with the observer told of each launch.
static void execute_observed(const Program &program, host::ThreadPool &pool, const Observer &observer) {
  std::vector<std::span<const std::byte>> args;
  for (const Step &step : program.steps) {
    execute(step, pool);
    if (!step.launch)
      continue;
    args.clear();
    const auto *pointers = static_cast<const std::byte *const *>(step.args);
    for (const plan::Slice *slice : *step.launch->args())
      args.emplace_back(pointers[args.size()], slice->bytes());
    observer(*step.launch, args);
  }
}

Result<void> Session::run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) {
  if (!impl->bound)
    return fail(Code::invalid_input, "the session is not bound; call bind() before run()");
  Bound &bound = *impl->bound;
  if (entry >= bound.programs.size())
    return fail(Code::not_found, cat("entry ", entry, ", the plan has ", bound.programs.size()));
  const Program &program = bound.programs[entry];
  // All names and sizes before the first byte is copied: a refused run changes nothing.
  for (const NamedInput &input : inputs)
    K31_TRY(check_port(program.inputs, "input", input.name, input.bytes.size()));
  for (const NamedOutput &output : outputs)
    K31_TRY(check_port(program.outputs, "output", output.name, output.bytes.size()));

  for (const NamedInput &input : inputs)
    if (!input.bytes.empty())
      memcpy(find(program.inputs, input.name)->data, input.bytes.data(), input.bytes.size());
  if (impl->observer)
    execute_observed(program, *bound.pool, impl->observer);
  else
    execute(program, *bound.pool);
  for (const NamedOutput &output : outputs)
    if (!output.bytes.empty())
      memcpy(output.bytes.data(), find(program.outputs, output.name)->data, output.bytes.size());
  return {};
}

void Session::observe(Observer observer) { impl->observer = std::move(observer); }

std::span<std::byte> Session::arena(uint32_t index) {
  if (!impl->bound || index >= impl->bound->arenas.size())
    return {};
  return impl->bound->arenas[index].bytes();
}

} // namespace k31
