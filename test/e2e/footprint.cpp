// k31-e2e footprint: every entry at its largest shape, its sequences at the end of the context. After each launch every byte that
// its arguments do not let it write must be as before: sanitizers do not see the machine code of a plan.
#include "runtime/arena_access.h"
#include "runtime/base/cat.h"
#include "runtime/schema/plan_generated.h"
#include "test/e2e/e2e.h"
#include "tools/k31_run/entry_inputs.h"
#include <algorithm>
#include <cstdio>

namespace k31::e2e {
namespace {

class Shadow {
public:
  explicit Shadow(Session &session) : session(session) {
    for (uint32_t i = 0; i < session.plan().arenas()->size(); ++i)
      copies.emplace_back(session.arena(i).begin(), session.arena(i).end());
  }

  void refresh() {
    for (uint32_t i = 0; i < copies.size(); ++i)
      if (!copies[i].empty())
        memcpy(copies[i].data(), session.arena(i).data(), copies[i].size());
  }

  // The first changed byte that the launch may not write: "arena 'x', byte 7", or nothing.
  std::string changed(const plan::Launch &launch) const {
    for (uint32_t i = 0; i < copies.size(); ++i) {
      std::vector<std::pair<uint64_t, uint64_t>> written;
      for (const plan::Slice *slice : *launch.args())
        if (slice->arena() == i && slice->access() != plan::Access::read)
          written.emplace_back(slice->offset(), slice->offset() + slice->bytes());
      std::sort(written.begin(), written.end());
      written.emplace_back(copies[i].size(), copies[i].size());
      uint64_t from = 0;
      for (const auto &[begin, end] : written) {
        if (from < begin && memcmp(&copies[i][from], &session.arena(i)[from], begin - from) != 0) {
          const auto at = std::mismatch(copies[i].begin() + int64_t(from), copies[i].begin() + int64_t(begin),
                                        session.arena(i).begin() + int64_t(from));
          return cat("arena ", quote(session.plan().arenas()->Get(i)->name()->str()), ", byte ", at.first - copies[i].begin());
        }
        from = std::max(from, end);
      }
    }
    return "";
  }

private:
  Session &session;
  std::vector<std::vector<std::byte>> copies;
};

} // namespace

Result<void> footprint(const Options &options) {
  K31_ASSIGN(const auto session, open(options));
  const plan::Plan &plan = session->plan();
  for (const plan::StateMember *member : *plan.state()->members()) // poisoned so far; a sequence has finite values
    K31_TRY(session->memory()->fill(member->arena(), member->offset(), member->unit_bytes() * member->units(), std::byte(0)));
  Shadow shadow(*session);
  std::string wrong;
  uint32_t launches = 0;
  session->observe(
      [&](const plan::Launch &launch, std::span<const std::span<const std::byte>>) {
        ++launches;
        if (const std::string found = shadow.changed(launch); !found.empty() && wrong.empty())
          wrong = cat(launch.label()->str(), " changes ", found, ", which is in none of its results");
      },
      [&](const plan::Launch &, std::span<const std::span<const std::byte>>) { shadow.refresh(); });
  for (uint32_t number = 0; number < plan.entries()->size(); ++number) {
    const plan::Entry &entry = *plan.entries()->Get(number);
    const uint32_t sequences = std::min(entry.segments(), plan.state()->slots()), context = plan.model()->max_context();
    K31_ASSIGN(run::EntryInputs inputs, run::EntryInputs::make(plan, sequences, context));
    std::vector<run::Part> parts;
    for (uint32_t s = 0; s < sequences; ++s) {
      const uint32_t length = entry.rows() / sequences + (s < entry.rows() % sequences);
      parts.push_back({.sequence = s, .start = context - length, .length = length, .logits = length});
    }
    launches = 0;
    K31_TRY(session->run(number, inputs.fill(number, parts), {}));
    if (!wrong.empty())
      return fail(Code::internal, cat("entry ", quote(entry.name()->str()), ": ", wrong));
    std::printf("%s: %u rows of %u sequences, %u launches write their results alone\n", entry.name()->c_str(), inputs.live_rows(),
                inputs.live_segments(), launches);
  }
  return {};
}

} // namespace k31::e2e
