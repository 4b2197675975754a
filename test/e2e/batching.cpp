// k31-e2e batching: the logits of one prompt and of its first drawn tokens must not depend on how it is run. Each way becomes a
// tensor; caches are poisoned at first, and later ways find what earlier ones left.
#include "runtime/base/cat.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/session_executor.h"
#include "test/e2e/e2e.h"
#include <algorithm>

namespace k31::e2e {
namespace {

struct Way {
  uint32_t chunks; // of the prompt
  int32_t slot;
  bool company; // two sequences that draw already, and a prompt that comes at the same time
};

constexpr uint32_t drawn = 4;

std::vector<int32_t> reversed(std::span<const int32_t> tokens, size_t count) {
  std::vector<int32_t> out(tokens.rbegin(), tokens.rbegin() + int64_t(std::min(count, tokens.size())));
  return out;
}

Result<void> run(engine::SessionExecutor &executor, std::span<const int32_t> tokens, const Way &way, Tensors &out) {
  const engine::ModelFacts &model = executor.facts();
  engine::Engine engine(executor, {.chunk = uint32_t((tokens.size() + way.chunks - 1) / way.chunks)});
  if (way.company) {
    for (const size_t length : {5, 33})
      K31_TRY(engine.add({.tokens = reversed(tokens, length), .max_tokens = 256}));
    for (int i = 0; i < 16; ++i)
      K31_TRY(engine.step());
  }
  const std::string name = cat(way.chunks, " chunks, slot ", way.slot, way.company ? ", in company" : "");
  const auto keep = [&](uint64_t, std::span<const float> logits) {
    out.append(name, std::as_bytes(logits), logits.size_bytes(), true);
  };
  K31_ASSIGN(const engine::SequenceId id,
             engine.add_in_slot({.tokens = {tokens.begin(), tokens.end()}, .max_tokens = drawn, .on_logits = keep}, way.slot));
  if (way.company)
    K31_TRY(engine.add({.tokens = reversed(tokens, 40), .max_tokens = 1}));
  std::optional<engine::Output> output;
  uint32_t shared = 0; // segments of the fullest prefill
  while (!(output = engine.take(id))) {
    K31_ASSIGN(const engine::StepReport report, engine.step());
    if (!report.rows)
      return fail(Code::internal, name + ": nothing runs");
    if (!model.entries[report.entry].decode)
      shared = std::max(shared, report.segments);
  }
  if (output->error)
    return fail(output->error->code, name + ": " + output->error->message);
  if (way.company ? shared < 4 : shared != 1)
    return fail(Code::internal, cat(name, ": ", shared, " segments shared a prefill, expected ", way.company ? "4" : "1"));
  return {};
}

} // namespace

Result<void> batching(const Options &options) {
  K31_ASSIGN(const auto session, open(options));
  K31_ASSIGN(engine::SessionExecutor executor, engine::SessionExecutor::make(*session));
  Tensors out;
  for (const bool company : {false, true})
    for (const uint32_t chunks : {1, 2, 7})
      for (const int32_t slot : {5, 0})
        if (!company || slot == 5) // the others of the company take the first slots
          K31_TRY(run(executor, options.tokens, {chunks, slot, company}, out));
  return out.write(options.out);
}

} // namespace k31::e2e
