// k31-e2e states: a real plan under the engine's care of states. Saved states, rolled back tries, forks, kept prefixes and
// preempted sequences give the tokens of a run alone; a value that is not finite ends its own sequence only.
#include "runtime/base/cat.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/session_executor.h"
#include "test/e2e/e2e.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

namespace k31::e2e {
namespace {

using namespace engine;
using Ids = std::vector<int32_t>;

constexpr float kTie = 1e-3f; // two logits that near may change places when sums run in another order

Result<void> require(bool holds, const std::string &what) { return holds ? Result<void>() : fail(Code::internal, what); }

struct Alone {
  Ids tokens;
  std::vector<float> margins; // of each token over the second best
};

class States {
public:
  States(const Options &options, SessionExecutor &executor) : options(options), executor(executor) {}

  Result<void> run() {
    K31_TRY(restores());
    K31_TRY(rollbacks());
    K31_TRY(mixes());
    for (const StateKind kind : {StateKind::latent, StateKind::index, StateKind::kda, StateKind::conv})
      K31_TRY(guards(kind));
    return {};
  }

  // With a checkpoint in which the embedding of one id is NaN.
  Result<void> broken_weights(int32_t id) {
    Engine engine(executor);
    std::map<SequenceId, Ids> others;
    SequenceId bad = 0;
    for (int i = 0; i < 3; ++i) {
      Ids prompt = text(20 + 7 * size_t(i));
      std::replace(prompt.begin(), prompt.end(), id, id + 1);
      K31_ASSIGN(const SequenceId other, engine.add({.tokens = prompt, .max_tokens = 12}));
      others.emplace(other, prompt);
      if (i == 1) {
        prompt[9] = id;
        K31_ASSIGN(bad, engine.add({.tokens = prompt, .max_tokens = 12}));
      }
    }
    K31_TRY(engine.finish());
    K31_TRY(failed(engine, bad, "are not finite"));
    return equal_alone(engine, others, "beside a token whose weights are NaN");
  }

private:
  Ids text(size_t count) {
    Ids ids(count);
    for (int32_t &id : ids)
      id = int32_t(random() % (executor.facts().vocab - 300)) + 20; // no control ids
    return ids;
  }

  Result<Alone> alone(const Ids &prompt, uint32_t count) {
    Engine engine(executor, {.poison = true});
    Alone out;
    const auto margin = [&](uint64_t position, std::span<const float> row) {
      if (position + 1 < prompt.size())
        return;
      std::vector<float> best(2);
      std::partial_sort_copy(row.begin(), row.end(), best.begin(), best.end(), std::greater<float>());
      out.margins.push_back(best[0] - best[1]);
    };
    K31_ASSIGN(const SequenceId id, engine.add({.tokens = prompt, .max_tokens = count, .on_logits = margin}));
    K31_TRY(engine.finish());
    Output result = *engine.take(id);
    if (result.error)
      return tl::unexpected(*result.error);
    out.tokens = std::move(result.tokens);
    return out;
  }

  // Equal up to the first tie.
  Result<void> compare(const Ids &prompt, const Ids &found, const std::string &what) {
    K31_ASSIGN(const Alone want, alone(prompt, uint32_t(found.size())));
    for (size_t i = 0; i < found.size(); ++i) {
      if (want.margins[i] < kTie)
        break;
      ++compared;
      if (i >= want.tokens.size() || found[i] != want.tokens[i])
        return fail(Code::internal,
                    cat(what, ": token ", i, " after ", prompt.size(), " is ", found[i], ", alone ", want.tokens[i]));
    }
    return {};
  }

  // The outputs of finished sequences against their prompts' runs alone. The engine must be empty: they use the same memory.
  Result<void> equal_alone(Engine &engine, const std::map<SequenceId, Ids> &prompts, const std::string &what) {
    std::map<SequenceId, Ids> found;
    for (const auto &[id, prompt] : prompts) {
      const auto out = engine.take(id);
      K31_TRY(require(out && !out->error,
                      cat(what, ": sequence ", id, " did not finish: ", out && out->error ? out->error->message : "")));
      found.emplace(id, out->tokens);
    }
    for (const auto &[id, prompt] : prompts)
      K31_TRY(compare(prompt, found[id], what));
    std::printf("%s: %zu sequences equal their runs alone, %zu tokens compared so far\n", what.c_str(), prompts.size(), compared);
    return {};
  }

  Result<void> failed(Engine &engine, SequenceId id, const std::string &reason) {
    const auto out = engine.take(id);
    K31_TRY(require(out && out->error && out->error->message.find(reason) != std::string::npos,
                    cat("expected a failure with '", reason, "', found ", out && out->error ? out->error->message : "none")));
    return require(engine.counters().non_finite == 1, "the counter of values that are not finite");
  }

  Result<void> restores() {
    const uint32_t block = executor.facts().block_tokens;
    const Ids all = text(block + 40);
    for (const uint32_t boundary : {1u, 77u, block - 1, block, block + 1, block + 39}) {
      const Ids head(all.begin(), all.begin() + boundary);
      std::shared_ptr<const std::vector<std::byte>> image;
      {
        Engine source(executor, {.poison = true});
        K31_ASSIGN(const SequenceId id, source.add({.tokens = head, .hold = true}));
        K31_TRY(source.finish());
        K31_ASSIGN(std::vector<std::byte> bytes, source.save(id));
        image = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
        source.cancel(id); // and all of it is poison
      }
      Engine target(executor, {.poison = true});
      K31_TRY(target.add({.tokens = text(30), .hold = true})); // takes the first slot and block
      K31_TRY(target.finish());
      K31_ASSIGN(const SequenceId id, target.add({.tokens = all, .max_tokens = 8, .state = image}));
      K31_TRY(target.finish());
      K31_TRY(equal_alone(target, {{id, all}}, cat("restored at ", boundary)));
    }
    return {};
  }

  Result<void> rollbacks() {
    Ids accepted = text(230);
    std::vector<float> last;
    const auto keep = [&](uint64_t, std::span<const float> row) { last.assign(row.begin(), row.end()); };
    Engine engine(executor, {.poison = true});
    K31_ASSIGN(const SequenceId id, engine.add({.tokens = accepted, .hold = true, .on_logits = keep}));
    K31_TRY(engine.finish());
    for (int cycle = 0; cycle < 60; ++cycle) {
      const Ids tried = text(1 + random() % 6);
      K31_TRY(engine.mark(id));
      K31_TRY(engine.extend(id, tried));
      K31_TRY(engine.finish());
      accepted.insert(accepted.end(), tried.begin(), tried.begin() + int64_t(random() % (tried.size() + 1)));
      K31_TRY(engine.rollback(id, uint32_t(accepted.size())));
      accepted.push_back(text(1)[0]);
      K31_TRY(engine.extend(id, std::span(accepted).last(1)));
      K31_TRY(engine.finish());
    }
    const std::vector<float> found = last;
    engine.cancel(id);
    Engine replay(executor, {.poison = true});
    K31_TRY(replay.add({.tokens = accepted, .on_logits = keep}));
    K31_TRY(replay.finish());
    float worst = 0;
    for (size_t i = 0; i < found.size(); ++i)
      worst = std::fmax(worst, std::isfinite(found[i]) ? std::abs(found[i] - last[i]) : INFINITY);
    std::printf("60 tries rolled back, %zu tokens accepted: logits differ by %.3g from a replay\n", accepted.size(),
                double(worst));
    return require(worst <= 1e-3f, "logits after rollbacks differ");
  }

  // Shared prefixes, forks and more sequences than there is memory for.
  Result<void> mixes() {
    Engine engine(executor, {.kept_states = 1, .poison = true});
    std::map<SequenceId, Ids> prompts;
    const Ids base = text(250), system(base.begin(), base.begin() + 241);
    K31_TRY(engine.add({.tokens = base})); // its state is kept, and the first prompt goes on from it
    K31_TRY(engine.finish());
    for (int i = 0; i < 14; ++i) {
      Ids prompt = i % 3 ? system : base;
      const Ids question = text(1 + random() % 14);
      prompt.insert(prompt.end(), question.begin(), question.end());
      K31_ASSIGN(const SequenceId id, engine.add({.tokens = prompt, .max_tokens = 20 + uint32_t(random() % 20), .keep = {241}}));
      prompts.emplace(id, prompt);
      for (uint64_t steps = i < 4 ? 60 : random() % 5; steps && !engine.idle(); --steps) // the first ones come one by one
        K31_TRY(engine.step());
      const Sequence *parent = engine.find(id);
      if (i % 4 == 2 && parent && parent->pending()) {
        Ids of_child = parent->tokens, more = text(2);
        of_child.insert(of_child.end(), more.begin(), more.end());
        K31_ASSIGN(const SequenceId child, engine.fork(id, {.tokens = more, .max_tokens = 12}));
        prompts.emplace(child, of_child);
      }
    }
    K31_TRY(engine.finish());
    const Counters &c = engine.counters();
    std::printf("%zu preemptions, %zu reuses, %zu blocks copied\n", size_t(c.preemptions), size_t(c.reuses),
                size_t(c.copied_blocks));
    K31_TRY(require(c.preemptions && c.reuses && c.copied_blocks, "nothing was preempted, reused or copied"));
    engine.forget();
    return equal_alone(engine, prompts, "shared, forked and preempted");
  }

  Result<void> guards(StateKind kind) {
    // Keys that are not scored, while all positions are selected, reach no logits: the states are looked at for them.
    Engine engine(executor, {.check_state = kind == StateKind::index});
    std::map<SequenceId, Ids> others;
    SequenceId bad = 0;
    for (int i = 0; i < 3; ++i) {
      const Ids prompt = text(25 + 5 * size_t(i));
      K31_ASSIGN(const SequenceId id, engine.add({.tokens = prompt, .max_tokens = 20}));
      if (i == 1)
        bad = id;
      else
        others.emplace(id, prompt);
    }
    for (int i = 0; i < 4; ++i)
      K31_TRY(engine.step());
    const Sequence &s = *engine.find(bad);
    const int32_t block = s.table[0], slot = s.slot;
    StateMemory &memory = executor.state();
    const auto member = std::find_if(memory.layout().members.begin(), memory.layout().members.end(),
                                     [&](const StateMember &m) { return m.kind == kind; });
    K31_TRY(
        require(member != memory.layout().members.end() && (member->element == Element::f32 || member->element == Element::codes),
                "a cache of this kind, in fp32 or fp8"));
    const float nan = NAN;
    const uint64_t codes = member->codes; // of the first row, before its scale
    const uint64_t scale = kind == StateKind::index ? memory.layout().block_tokens * codes : codes;
    K31_TRY(options.session->memory()->write(
        member->arena, member->offset + uint64_t(member->paged() ? block : slot) * member->unit_bytes + scale,
        std::as_bytes(std::span(&nan, 1))));
    while (engine.find(bad))
      K31_TRY(engine.step());
    std::vector<std::byte> unit(member->unit_bytes);
    K31_TRY(options.session->memory()->read(
        member->arena, member->offset + uint64_t(member->paged() ? block : slot) * member->unit_bytes, unit));
    K31_TRY(
        require(std::all_of(unit.begin(), unit.end(), [](std::byte b) { return b == std::byte(0); }), "the memory is not clean"));
    K31_TRY(engine.finish());
    // The oldest input of a window is used once and gone: what it spoiled begins one layer later.
    K31_TRY(failed(engine, bad, cat("of layer ", member->layer + (kind == StateKind::conv))));
    return equal_alone(engine, others, cat("beside NaN in cache ", int(kind)));
  }

  const Options &options;
  SessionExecutor &executor;
  std::mt19937 random{11};
  size_t compared = 0;
};

} // namespace

Result<void> states(const Options &given) {
  Options options = given;
  K31_ASSIGN(const auto session, open(options));
  options.session = session.get();
  K31_ASSIGN(SessionExecutor executor, SessionExecutor::make(*session));
  States states(options, executor);
  return options.broken_id >= 0 ? states.broken_weights(options.broken_id) : states.run();
}

} // namespace k31::e2e
