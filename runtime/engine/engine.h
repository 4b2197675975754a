// Runs many sequences at once: each step packs parts of several into one entry of the plan.
//
// A sequence waits for a slot, its prompt runs in chunks, then one token a step. Blocks are taken as it grows. When none are left
// the youngest sequence gives its memory back and starts again later; its text stays the same, because a draw depends on (seed,
// count) alone.
#pragma once
#include "runtime/engine/request.h"
#include "runtime/engine/scheduler.h"
#include "runtime/engine/state_manager.h"
#include <deque>
#include <unordered_map>

namespace k31::engine {

struct EngineOptions {
  uint32_t chunk = 0; // most tokens of one sequence in one step; 0: what the entry holds
};

struct StepReport {
  uint32_t entry = 0;
  uint32_t rows = 0; // 0: nothing to do
  uint32_t segments = 0;
  uint32_t drawn = 0;
};

class Engine {
public:
  // The executor outlives the engine.
  explicit Engine(Executor &executor, EngineOptions options = {});
  ~Engine();

  // Queues a sequence. Refuses what the plan can never run.
  Result<SequenceId> add(Request request) { return add_in_slot(std::move(request), -1); }
  // For tests: the sequence waits for the given state slot; -1: any.
  Result<SequenceId> add_in_slot(Request request, int32_t slot);

  // One run of one entry. An error means that the run itself failed; the sequences in it have failed with the same error.
  Result<StepReport> step();

  // Steps until every sequence has finished.
  Result<void> finish();

  bool idle() const { return waiting.empty() && running.empty(); }
  size_t in_flight() const { return waiting.size() + running.size(); }

  // The output of a finished sequence, once; nothing for others.
  std::optional<Output> take(SequenceId id);

  // Ends a sequence that has not finished; nothing of it is kept.
  void cancel(SequenceId id);

  const BlockManager &blocks() const { return block_pool; }
  const StateManager &slots() const { return state_pool; }
  uint64_t preemptions() const { return preempted; }

private:
  struct Sequence;
  using Owned = std::unique_ptr<Sequence>;

  void admit();
  bool schedule();
  Result<void> run_batch();
  void preempt();
  void release(Sequence &sequence);
  void end(Sequence &sequence, Finish finish, std::optional<Error> error = {});
  void collect();
  uint32_t advance(Sequence &sequence, const ScheduledSegment &segment, uint32_t logit_row);
  void draw(Sequence &sequence, int32_t id);

  Executor &executor;
  const ModelFacts &model;
  BlockManager block_pool;
  StateManager state_pool;
  Scheduler scheduler;
  Batch batch;
  Work work;
  std::vector<Candidate> candidates;
  std::deque<Owned> waiting;  // in order of arrival
  std::vector<Owned> running; // in order of arrival
  std::unordered_map<SequenceId, Output> outputs;
  SequenceId next_id = 1;
  uint64_t steps = 0;
  uint64_t preempted = 0;
};

} // namespace k31::engine
