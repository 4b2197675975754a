// k31-e2e observe: one prompt in the last slot and the last blocks, in chunks. Writes
//   LABEL, LABEL#1 ...        the outputs of the launches of the kernels asked for: live rows of all chunks, as bytes; each
//                             product of those that were merged under its own label
//   state.LAYER.KIND          the sequence's cache afterwards: a row a position (latent, index) or a row (kda, conv), as bytes
#include "runtime/base/cat.h"
#include "runtime/engine/batch.h"
#include "runtime/engine/session_executor.h"
#include "runtime/schema/launches.h"
#include "test/e2e/e2e.h"
#include <algorithm>

namespace k31::e2e {
namespace {

// The smallest prefill entry that takes `rows` rows, or the largest one.
uint32_t entry_for(const engine::ModelFacts &model, uint32_t rows) {
  uint32_t best = uint32_t(model.entries.size());
  for (uint32_t i = 0; i < model.entries.size(); ++i) {
    if (model.entries[i].decode)
      continue;
    const uint32_t have = best < model.entries.size() ? model.entries[best].rows : 0, found = model.entries[i].rows;
    if (have < rows ? found > have : found >= rows && found < have)
      best = i;
  }
  return best;
}

bool wanted(std::string_view kernel, std::string_view prefixes) {
  while (!prefixes.empty()) {
    const size_t comma = std::min(prefixes.find(','), prefixes.size());
    if (kernel.starts_with(prefixes.substr(0, comma)))
      return true;
    prefixes.remove_prefix(std::min(comma + 1, prefixes.size()));
  }
  return false;
}

void write_state(Session &session, const engine::BlockTable &table, int32_t slot, size_t positions, Tensors &out) {
  const plan::StateGroup &state = *session.plan().state();
  for (const plan::StateMember *member : *state.members()) {
    const std::string name = cat("state.", member->layer(), ".", plan::EnumNameStateKind(member->kind()));
    const auto unit = [&](int32_t number) {
      return session.arena(member->arena())
          .subspan(member->offset() + uint64_t(number) * member->unit_bytes(), member->unit_bytes());
    };
    if (member->kind() == plan::StateKind::kda || member->kind() == plan::StateKind::conv) {
      out.append(name, unit(slot), member->unit_bytes());
      continue;
    }
    const uint64_t row_bytes = member->unit_bytes() / state.block_tokens();
    for (size_t p = 0; p < positions; ++p)
      out.append(name, unit(table[p / state.block_tokens()]).subspan(p % state.block_tokens() * row_bytes, row_bytes), row_bytes);
  }
}

} // namespace

Result<void> observe(const Options &options) {
  K31_ASSIGN(const auto session, open(options));
  K31_ASSIGN(engine::SessionExecutor executor, engine::SessionExecutor::make(*session));
  const engine::ModelFacts &model = executor.facts();
  const size_t count = options.tokens.size();
  engine::BlockTable table;
  for (size_t i = 0; i < (count - 1) / model.block_tokens + 1; ++i)
    table.push_back(int32_t(model.blocks - 1 - i));
  const int32_t slot = int32_t(model.slots - 1);

  Tensors out;
  uint32_t rows = 0, live = 0; // of the entry that runs
  session->observe([&](const plan::Launch &launch, std::span<const std::span<const std::byte>> args) {
    if (!wanted(session->plan().kernels()->Get(launch.kernel())->name()->string_view(), options.kernels))
      return;
    for (uint32_t i = 0, outputs = 0; i < args.size(); ++i) {
      const plan::Slice &arg = *launch.args()->Get(i);
      if (arg.access() != plan::Access::write || session->plan().arenas()->Get(arg.arena())->kind() == plan::ArenaKind::workspace)
        continue;
      const uint64_t row_bytes = args[i].size() / rows;
      const std::string all = launch.label()->str(), own = plan::output_label(all, outputs);
      out.append(own + (outputs && own == all ? cat("#", outputs) : ""), args[i].first(live * row_bytes), row_bytes);
      ++outputs;
    }
  });
  engine::Batch batch(model);
  for (size_t begin = 0; begin < count; begin += live) {
    const size_t most = options.chunk ? std::min<size_t>(options.chunk, count - begin) : count - begin;
    const uint32_t entry = entry_for(model, uint32_t(most));
    if (entry == model.entries.size())
      return fail(Code::unsupported, "the plan has no prefill entry");
    rows = model.entries[entry].rows, live = uint32_t(std::min<size_t>(rows, most));
    batch.clear(entry);
    batch.add(std::span(options.tokens).subspan(begin, live), uint32_t(begin), slot, slot, table, 0, {}, 0);
    K31_TRY(batch.run(executor, false));
  }
  write_state(*session, table, slot, count, out);
  return out.write(options.out);
}

} // namespace k31::e2e
