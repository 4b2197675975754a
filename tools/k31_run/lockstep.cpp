#include "tools/k31_run/lockstep.h"
#include "runtime/base/cat.h"
#include "runtime/schema/launches.h"
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

namespace k31::run {
namespace {

using Args = std::span<const std::span<const std::byte>>;

// "nn.row" of "nn.row add+rms_norm": plans may fuse differently.
std::string_view op_of(std::string_view kernel) { return kernel.substr(0, kernel.find(' ')); }

std::vector<std::pair<std::string, const plan::Launch *>> launches_of(const plan::Plan &plan, uint32_t number) {
  const plan::Entry &entry = *plan.entries()->Get(number);
  std::vector<std::pair<std::string, const plan::Launch *>> list;
  for (uint32_t i = 0; i < entry.commands()->size(); ++i)
    if (const plan::Launch *launch = plan::launch_of(entry, i))
      list.emplace_back(cat(launch->label() ? launch->label()->str() : "", " ",
                            op_of(plan.kernels()->Get(launch->kernel())->name()->string_view())),
                        launch);
  return list;
}

// Counterparts of the plan's launches, in an order that both plans keep.
std::map<const plan::Launch *, const plan::Launch *> match(const plan::Plan &a, uint32_t entry_a, const plan::Plan &b,
                                                           uint32_t entry_b) {
  std::map<std::string, std::vector<std::pair<size_t, const plan::Launch *>>> places;
  const auto reference = launches_of(b, entry_b);
  for (size_t i = 0; i < reference.size(); ++i)
    places[reference[i].first].emplace_back(i, reference[i].second);
  std::map<std::string, size_t> taken;
  std::map<const plan::Launch *, const plan::Launch *> pairs;
  size_t next = 0; // place in the reference: it cannot go back
  for (const auto &[key, launch] : launches_of(a, entry_a)) {
    const auto &candidates = places[key];
    size_t &used = taken[key];
    while (used < candidates.size() && candidates[used].first < next)
      ++used;
    if (used == candidates.size())
      continue;
    next = candidates[used].first + 1;
    pairs[launch] = candidates[used++].second;
  }
  return pairs;
}

// Stops a thread at chosen launches, and before the first one, where the point is the gate itself. The stopping thread holds
// still while the other one works on its memory.
class Gate {
public:
  // On the reference's thread.
  void pass(const void *point, bool after, Args args) {
    std::unique_lock lock(mutex);
    if (point != wanted || after != wanted_after)
      return;
    stopped = true;
    seen.assign(args.begin(), args.end());
    changed.notify_all();
    changed.wait(lock, [&] { return !stopped; });
  }
  void end() {
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }

  // On the plan's thread: lets the reference run to this point. False when it has ended before.
  bool advance(const plan::Launch *launch, bool after) {
    std::unique_lock lock(mutex);
    wanted = launch, wanted_after = after, stopped = false;
    changed.notify_all();
    changed.wait(lock, [&] { return stopped || ended; });
    return stopped;
  }
  void release() {
    const std::lock_guard lock(mutex);
    wanted = nullptr, stopped = false;
    changed.notify_all();
  }
  Args args() const { return seen; }

private:
  std::mutex mutex;
  std::condition_variable changed;
  const void *wanted = this; // the begin of the run
  bool wanted_after = false, stopped = false, ended = false;
  std::vector<std::span<const std::byte>> seen;
};

class Runner {
public:
  Runner(Session &plan, Session &reference, const LockstepOptions &options)
      : plan(plan), reference(reference), options(options) {}

  Result<LockstepReport> run(uint32_t plan_entry, std::span<const NamedInput> plan_inputs, uint32_t reference_entry,
                             std::span<const NamedInput> reference_inputs) {
    pairs = match(plan.plan(), plan_entry, reference.plan(), reference_entry);
    const auto pass = [&](bool after) {
      return [this, after](const plan::Launch &launch, Args args) { gate.pass(&launch, after, args); };
    };
    reference.observe(pass(true), pass(false));
    plan.observe([&](const plan::Launch &launch, Args args) { after(launch, args); },
                 [&](const plan::Launch &launch, Args args) { before(launch, args); });
    Result<void> reference_done;
    std::thread other([&] {
      gate.pass(&gate, false, {});
      reference_done = reference.run(reference_entry, reference_inputs, {});
      gate.end();
    });
    const Result<void> plan_done = plan.run(plan_entry, plan_inputs, {});
    gate.release();
    other.join();
    plan.observe({}), reference.observe({});
    K31_TRY(plan_done);
    K31_TRY(reference_done);
    return report;
  }

private:
  static std::byte *writable(std::span<const std::byte> bytes) { return const_cast<std::byte *>(bytes.data()); }

  static plan::ArenaKind kind(const Session &session, const plan::Slice &slice) {
    return session.plan().arenas()->Get(slice.arena())->kind();
  }

  // Outputs that are worth a comparison: workspaces and what peers wrote are not.
  static bool is_output(const Session &session, const plan::Slice &slice) {
    const plan::ArenaKind where = kind(session, slice);
    return slice.access() != plan::Access::read && where != plan::ArenaKind::workspace && where != plan::ArenaKind::weights &&
           where != plan::ArenaKind::shared;
  }

  // Fills what the launch writes anew, so that dead rows are told from live ones. Caches keep what they hold.
  static void mark_outputs(const Session &session, const plan::Launch &launch, Args args) {
    for (uint32_t i = 0; i < args.size(); ++i) {
      const plan::Slice &slice = *launch.args()->Get(i);
      const plan::ArenaKind where = kind(session, slice);
      if (slice.access() == plan::Access::write && (where == plan::ArenaKind::activations || where == plan::ArenaKind::io))
        memset(writable(args[i]), int(kUnwritten), args[i].size());
    }
  }

  void before(const plan::Launch &launch, Args args) {
    const auto pair = pairs.find(&launch);
    if (pair == pairs.end() || !gate.advance(pair->second, false)) {
      ++report.unmatched;
      if (report.alone.size() < 8)
        report.alone.push_back(launch.label() ? launch.label()->str() : "");
      return;
    }
    ++report.matched;
    if (options.from_reference)
      copy_inputs(launch, args, *pair->second);
    mark_outputs(plan, launch, args);
    mark_outputs(reference, *pair->second, gate.args());
  }

  // Inputs of equal type and size; rows of views are apart by what the plan put beside them, so other sizes are not comparable.
  // Pools may differ in their number of blocks or slots: the first ones are used.
  void copy_inputs(const plan::Launch &launch, Args args, const plan::Launch &other) {
    if (args.size() != gate.args().size()) {
      ++report.kept_inputs;
      return;
    }
    const auto *mine = plan.plan().kernels()->Get(launch.kernel())->operands();
    const auto *theirs = reference.plan().kernels()->Get(other.kernel())->operands();
    for (uint32_t i = 0; i < args.size(); ++i) {
      const plan::Slice &slice = *launch.args()->Get(i);
      const plan::ArenaKind where = kind(plan, slice);
      if (slice.access() == plan::Access::write && where != plan::ArenaKind::cache && where != plan::ArenaKind::state)
        continue;
      if (where == plan::ArenaKind::weights || where == plan::ArenaKind::workspace || where == plan::ArenaKind::shared)
        continue;
      const bool pool = where == plan::ArenaKind::cache || where == plan::ArenaKind::state;
      const bool same_type =
          mine->Get(i)->dtype() == theirs->Get(i)->dtype() && mine->Get(i)->columns() == theirs->Get(i)->columns();
      if (same_type && (pool || args[i].size() == gate.args()[i].size()))
        memcpy(writable(args[i]), gate.args()[i].data(), std::min(args[i].size(), gate.args()[i].size()));
      else if (where != plan::ArenaKind::io) // which the tool has filled alike in both
        ++report.kept_inputs;
    }
  }

  void after(const plan::Launch &launch, Args args) {
    const auto pair = pairs.find(&launch);
    if (pair == pairs.end() || !gate.advance(pair->second, true))
      return;
    const auto a = outputs(plan, launch, args), b = outputs(reference, *pair->second, gate.args());
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      options.compare({&launch, pair->second, a[i].first,
                       launch.label() ? plan::output_label(launch.label()->string_view(), uint32_t(i)) : "", a[i].second,
                       b[i].second});
  }

  static std::vector<std::pair<uint32_t, Values>> outputs(const Session &session, const plan::Launch &launch, Args args) {
    std::vector<std::pair<uint32_t, Values>> list;
    const auto &operands = *session.plan().kernels()->Get(launch.kernel())->operands();
    for (uint32_t i = 0; i < args.size(); ++i)
      if (is_output(session, *launch.args()->Get(i)))
        list.push_back({i, {args[i], operands.Get(i)->dtype(), operands.Get(i)->columns()}});
    return list;
  }

  Session &plan, &reference;
  const LockstepOptions &options;
  std::map<const plan::Launch *, const plan::Launch *> pairs;
  Gate gate;
  LockstepReport report;
};

} // namespace

Result<LockstepReport> run_lockstep(Session &plan, uint32_t plan_entry, std::span<const NamedInput> plan_inputs,
                                    Session &reference, uint32_t reference_entry, std::span<const NamedInput> reference_inputs,
                                    const LockstepOptions &options) {
  return Runner(plan, reference, options).run(plan_entry, plan_inputs, reference_entry, reference_inputs);
}

} // namespace k31::run
