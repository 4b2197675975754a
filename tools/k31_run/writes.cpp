#include "tools/k31_run/writes.h"
#include "runtime/arena_access.h"
#include "runtime/base/cat.h"
#include "runtime/base/hash.h"
#include "tools/k31_run/entry_inputs.h"
#include <algorithm>
#include <cstring>

namespace k31::run {
namespace {

using Bytes = std::vector<std::byte>;

class Watch {
public:
  Watch(Session &session, WritesReport &report) : session(session), memory(*session.memory()), report(report) {
    for (uint32_t i = 0; i < arenas().size(); ++i)
      kept.emplace_back(is_watched(i) ? arenas().Get(i)->bytes() : 0), now.emplace_back(kept[i].size());
    for (const Bytes &arena : kept)
      report.bytes += arena.size();
  }

  // One run, which is observed.
  Result<void> run(uint32_t entry, const std::vector<NamedInput> &inputs) {
    K31_ASSIGN(const Digest before, hash_of_weights());
    session.observe([this](const plan::Launch &launch, auto) { after(launch); }, [this](const plan::Launch &, auto) { keep(); },
                    Shown::counts);
    const Result<void> ran = session.run(entry, inputs, {});
    session.observe({});
    K31_TRY(ran);
    K31_TRY(found);
    K31_ASSIGN(const Digest after, hash_of_weights());
    if (before != after)
      return fail(Code::internal, cat("entry ", name(entry), " changed the weights; no launch may write them"));
    ++report.entries;
    return {};
  }

private:
  const flatbuffers::Vector<flatbuffers::Offset<plan::Arena>> &arenas() const { return *session.plan().arenas(); }
  bool is_weights(uint32_t arena) const { return arenas().Get(arena)->kind() == plan::ArenaKind::weights; }
  // Weights have a hash, and peers write to shared arenas at any time.
  bool is_watched(uint32_t arena) const { return !is_weights(arena) && arenas().Get(arena)->kind() != plan::ArenaKind::shared; }
  std::string name(uint32_t entry) const { return session.plan().entries()->Get(entry)->name()->str(); }

  Result<Digest> hash_of_weights() {
    Hasher hasher;
    Bytes piece(16 << 20);
    for (uint32_t i = 0; i < arenas().size(); ++i)
      for (uint64_t at = 0; is_weights(i) && at < arenas().Get(i)->bytes(); at += piece.size()) {
        const std::span part = std::span(piece).first(std::min<uint64_t>(piece.size(), arenas().Get(i)->bytes() - at));
        K31_TRY(memory.read(i, at, part));
        hasher.update(part);
      }
    return hasher.digest();
  }

  void read(std::vector<Bytes> &to) {
    for (uint32_t i = 0; found && i < to.size(); ++i)
      found = memory.read(i, 0, to[i]);
  }
  void keep() { read(kept); }

  void after(const plan::Launch &launch) {
    read(now);
    ++report.launches;
    for (const plan::Slice *slice : *launch.args())
      if (slice->access() != plan::Access::read && is_watched(slice->arena()))
        memcpy(kept[slice->arena()].data() + slice->offset(), now[slice->arena()].data() + slice->offset(), slice->bytes());
    for (uint32_t i = 0; found && i < now.size(); ++i)
      if (now[i].size() && memcmp(now[i].data(), kept[i].data(), now[i].size()) != 0)
        found = stray(launch, i);
  }

  Result<void> stray(const plan::Launch &launch, uint32_t arena) const {
    const Bytes &a = kept[arena], &b = now[arena];
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin());
    uint64_t count = 0;
    for (size_t i = 0; i < a.size(); ++i)
      count += a[i] != b[i];
    const plan::Kernel &kernel = *session.plan().kernels()->Get(launch.kernel());
    return fail(Code::internal, cat("launch ", quote(launch.label() ? launch.label()->str() : ""), " (", kernel.name()->str(),
                                    ") changed ", count, " bytes that are none of its outputs, first at ",
                                    differ.first - a.begin(), " of arena ", arenas().Get(arena)->name()->str(),
                                    "; expected no byte outside of its outputs: the plan or its kernel is wrong"));
  }

  Session &session;
  ArenaAccess &memory;
  WritesReport &report;
  std::vector<Bytes> kept, now; // of each arena that is watched
  Result<void> found;
};

// As many tokens as the entry holds, at the last positions that the caches hold.
std::vector<Part> largest_run(const plan::Entry &entry, uint32_t sequences, uint32_t positions) {
  std::vector<Part> parts;
  uint32_t left = entry.rows();
  for (uint32_t s = 0; s < sequences && left > 0; ++s) {
    const uint32_t length = std::min({(entry.rows() + sequences - 1) / sequences, positions, left});
    parts.push_back({.sequence = s, .start = positions - length, .length = length, .logits = length});
    left -= length;
  }
  return parts;
}

} // namespace

Result<WritesReport> check_writes(Session &session, uint32_t stage) {
  const plan::Plan &plan = session.plan();
  WritesReport report;
  Watch watch(session, report);
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const plan::Entry &entry = *plan.entries()->Get(i);
    if (entry.stage() != stage)
      continue;
    const uint32_t sequences =
        std::max(1u, std::min({entry.segments(), plan.state()->slots(), entry.rows(), plan.state()->blocks()}));
    const uint32_t positions =
        std::min(plan.model()->max_context(), plan.state()->blocks() / sequences * plan.state()->block_tokens());
    K31_ASSIGN(EntryInputs inputs, EntryInputs::make(plan, sequences, positions, stage));
    K31_TRY(watch.run(i, inputs.fill(i, largest_run(entry, sequences, positions))));
  }
  return report;
}

} // namespace k31::run
