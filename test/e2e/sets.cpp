// k31-e2e sets: the positions that sparse attention reads, on every rank of a mesh. Ranks of a tp group must read the same ones,
// bit for bit: a prompt in chunks, then some decode steps.
#include "runtime/comm/communicator.h"
#include "runtime/engine/batch.h"
#include "runtime/schema/plan_generated.h"
#include "test/e2e/rank_threads.h"
#include <cstdio>

namespace k31::e2e {
namespace {

// What one rank's attention launches read as indices: live rows, launch after launch.
struct Sets {
  std::vector<int32_t> positions;
  uint64_t rows = 0, narrowed = 0; // rows; those that leave earlier positions out
};

class Recorder {
public:
  Recorder(Session &session, Sets &sets) : session(session), sets(sets) {
    session.observe([this](const plan::Launch &launch, std::span<const std::span<const std::byte>> args) { take(launch, args); });
  }
  ~Recorder() { session.observe({}); }

  // The next run is of positions [start, start + rows) of one sequence.
  void next(uint32_t start, uint32_t rows) { first = start, live = rows; }

private:
  void take(const plan::Launch &launch, std::span<const std::span<const std::byte>> args) {
    const plan::Kernel &kernel = *session.plan().kernels()->Get(launch.kernel());
    if (!kernel.name()->string_view().starts_with("attn.attend"))
      return;
    // The indices are the last whole numbers that it reads, behind those of the batch.
    uint32_t at = 0;
    for (uint32_t i = 0; i < args.size(); ++i)
      if (kernel.operands()->Get(i)->dtype() == plan::DType::i32)
        at = i;
    const uint64_t width = kernel.operands()->Get(at)->columns();
    std::vector<int32_t> values(live * width);
    memcpy(values.data(), args[at].data(), values.size() * sizeof(int32_t));
    for (uint32_t row = 0; row < live; ++row)
      ++sets.rows, sets.narrowed += first + row + 1 > width;
    sets.positions.insert(sets.positions.end(), values.begin(), values.end());
  }

  Session &session;
  Sets &sets;
  uint32_t first = 0, live = 0;
};

// The smallest entry of a kind that takes `rows` rows.
Result<uint32_t> entry_for(const engine::ModelFacts &model, bool decode, uint32_t rows) {
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < model.entries.size(); ++i)
    if (const engine::EntryFacts &e = model.entries[i];
        e.decode == decode && e.rows >= rows && (!best || e.rows < model.entries[*best].rows))
      best = i;
  if (!best)
    return fail(Code::unsupported, cat("the plan has no entry of ", rows, " rows"));
  return *best;
}

Result<Sets> read_sets(const Options &options, Rank &rank) {
  Sets sets;
  const engine::ModelFacts &model = rank.executor->facts();
  engine::BlockTable table;
  for (size_t i = 0; i < (options.tokens.size() - 1) / model.block_tokens + 1; ++i)
    table.push_back(int32_t(i));
  engine::Batch batch(model);
  Recorder recorder(*rank.session, sets);
  constexpr uint32_t steps = 3; // the last tokens are decoded
  for (uint32_t begin = 0, count = uint32_t(options.tokens.size()); begin < count;) {
    const bool decode = begin + steps >= count;
    const uint32_t length = decode ? 1 : std::min(options.chunk, count - steps - begin);
    K31_ASSIGN(const uint32_t entry, entry_for(model, decode, length));
    batch.clear(entry);
    batch.add(std::span(options.tokens).subspan(begin, length), begin, 0, 0, table, 0, {}, 0);
    recorder.next(begin, length);
    K31_TRY(batch.run(*rank.executor, false));
    begin += length;
  }
  return sets;
}

} // namespace

Result<void> sets(const Options &options) {
  RankThreads ranks(options, options.plan);
  K31_TRY(ranks.start());
  std::vector<Sets> found(ranks.size());
  K31_TRY(ranks.each([&](Rank &rank, uint32_t number) -> Result<void> {
    K31_ASSIGN(found[number], read_sets(options, rank));
    return {};
  }));
  for (uint32_t rank = 0; rank < found.size(); ++rank) {
    const uint32_t first = group_of(ranks.mesh(), plan::MeshAxis::tp, rank)[0];
    if (found[rank].positions != found[first].positions)
      return fail(Code::internal, cat("ranks ", first, " and ", rank, " of a tp group read different sets"));
    std::printf("rank %u: %llu sets, %llu of them a part of what is there, as rank %u\n", rank,
                static_cast<unsigned long long>(found[rank].rows), static_cast<unsigned long long>(found[rank].narrowed), first);
  }
  return {};
}

} // namespace k31::e2e
