// k31-e2e stages: whether the stages of a plan work at the same time. The last stage holds still at the start of its run n until
// the first one has begun run n + 1, which it never would if it waited for what run n draws.
#include "runtime/engine/engine.h"
#include "runtime/schema/plan_generated.h"
#include "test/e2e/rank_threads.h"
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <numeric>

namespace k31::e2e {
namespace {

using namespace engine;
using Ids = std::vector<int32_t>;

// How many runs the first stage has begun, or that it has ended.
class Progress {
public:
  void begin() {
    const std::lock_guard lock(mutex);
    ++begun;
    changed.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }
  // Whether `runs` have begun; waits for it.
  bool reaches(uint32_t runs) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(3), [&] { return begun >= runs || ended; });
    return begun >= runs;
  }
  bool over() {
    const std::lock_guard lock(mutex);
    return ended;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t begun = 0;
  bool ended = false;
};

// The executor of a rank that tells, or waits for, the progress of the first stage.
class Watched : public Executor {
public:
  Watched(Rank &rank, Progress &progress, bool first, bool last) : rank(rank), progress(progress), first(first) {
    if (last)
      rank.session->observe({}, [this](const plan::Launch &, std::span<const std::span<const std::byte>>) { hold(); });
  }
  ~Watched() override { rank.session->observe({}); }

  const ModelFacts &facts() const override { return rank.executor->facts(); }
  Result<std::optional<uint32_t>> agree(std::optional<uint32_t> entry) override { return rank.executor->agree(entry); }
  StateMemory &state() override { return rank.executor->state(); }
  Result<std::string> non_finite(const StatePlace &place) override { return rank.executor->non_finite(place); }
  Result<void> run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) override {
    ++runs;
    if (first)
      progress.begin();
    return rank.executor->run(entry, inputs, outputs);
  }
  Result<void> fetch(std::span<const NamedOutput> outputs) override { return rank.executor->fetch(outputs); }

  uint32_t runs = 0, overlapped = 0;

private:
  void hold() {
    if (held == runs || progress.over())
      return;
    held = runs;
    overlapped += progress.reaches(runs + 1);
  }

  Rank &rank;
  Progress &progress;
  bool first;
  uint32_t held = 0;
};

// Runs the requests on all ranks; prints how many runs of the last stage saw the next one begin. All but the last `tail` must.
Result<void> overlap(RankThreads &ranks, const char *what, const std::vector<Ids> &prompts, uint32_t drawn, uint32_t tail) {
  Progress progress;
  std::vector<std::vector<Ids>> texts(ranks.size());
  uint32_t runs = 0, overlapped = 0;
  K31_TRY(ranks.each([&](Rank &rank, uint32_t number) -> Result<void> {
    const bool first = number == 0, last = number + 1 == ranks.size();
    Watched executor(rank, progress, first, last);
    Engine engine(executor);
    std::vector<SequenceId> ids;
    for (const Ids &prompt : prompts) {
      K31_ASSIGN(const SequenceId id, engine.add({.tokens = prompt, .max_tokens = drawn}));
      ids.push_back(id);
    }
    const Result<void> done = engine.finish();
    if (first)
      progress.end();
    K31_TRY(done);
    for (const SequenceId id : ids)
      texts[number].push_back(engine.take(id)->tokens);
    if (last)
      runs = executor.runs, overlapped = executor.overlapped;
    return {};
  }));
  for (const std::vector<Ids> &text : texts)
    if (text != texts[0])
      return fail(Code::internal, cat(what, ": stages end with different texts"));
  std::printf("%s: %u runs, the next one began during %u of them\n", what, runs, overlapped);
  if (overlapped + tail < runs)
    return fail(Code::internal, cat(what, ": stages waited for each other"));
  return {};
}

} // namespace

Result<void> stages(const Options &options) {
  RankThreads ranks(options, options.plan);
  K31_TRY(ranks.start());
  Ids ids(200);
  std::iota(ids.begin(), ids.end(), 300);
  // One prompt in parts: only what draws is waited for.
  K31_TRY(overlap(ranks, "parts of a prompt", {ids}, 1, 1));
  // Two sequences a group; the first run is the prompts of both groups, whose ids the next one needs.
  K31_TRY(overlap(ranks, "decoding", {{300, 301}, {302, 303}, {304, 305}, {306, 307}}, 10, 2));
  return {};
}

} // namespace k31::e2e
