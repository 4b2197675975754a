// Runs many sequences at once: each step packs parts of several into one entry of the plan.
//
// A sequence waits for a slot, its prompt runs in chunks, then one token a step. Blocks are taken as it grows. A state (blocks
// and slot at one boundary) may have several owners: forks, marks to go back to, and states kept for sequences that begin with
// the same tokens. Nothing that has another owner is written: a run then reads one slot and writes another, and copies the last
// block, if the boundary is in the middle of it.
//
// When memory runs out, kept states go first, then marks, then the youngest sequence, which starts again later; its text stays
// the same, because a draw depends on (seed, count) alone. All choices depend on the calls and their order alone, so that engines
// that get the same calls take the same steps.
//
// Where a plan has pipeline stages several runs are under way at once (ModelFacts::depth), of different sequences or of
// consecutive parts of one prompt: a sequence waits for its own results alone, decoding sequences form as many groups. Results
// are taken after a fixed number of runs, not when they happen to be there.
#pragma once
#include "runtime/engine/kept_states.h"
#include "runtime/engine/scheduler.h"
#include "runtime/engine/sequence.h"
#include "runtime/engine/state_manager.h"
#include <deque>
#include <unordered_map>

namespace k31::engine {

struct EngineOptions {
  uint32_t chunk = 0;       // most tokens of one sequence in one step; 0: what the entry holds
  uint32_t kept_states = 0; // most states kept for later sequences: those of finished ones, and where Request::keep says
  uint32_t check_state = 0; // the whole states of what ran are looked at every so many steps; 0: when they are kept or saved
  bool poison = false;      // tests: memory that nobody owns is NaN
};

struct StepReport {
  uint32_t entry = 0;
  bool ran = false;  // false: no sequence is left, in no dp group
  uint32_t rows = 0; // 0: the step was for other dp groups alone
  uint32_t segments = 0;
  uint32_t drawn = 0; // tokens, of this run and of earlier ones whose results came
};

struct Counters {
  uint64_t preemptions = 0;
  uint64_t non_finite = 0; // sequences that failed because of a value that is not finite
  uint64_t reuses = 0;     // sequences that began with a kept state
  uint64_t reused_positions = 0;
  uint64_t copied_blocks = 0; // because they had another owner
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

  // A sequence that goes on from the parent's tokens, followed by those of the request (none, if there are tokens of the parent
  // that have not run). It begins with the parent's state. on_logits gets the positions after the parent's tokens.
  Result<SequenceId> fork(SequenceId parent, Request request);

  // For held sequences (Request::hold). extend: tokens to run next. mark: keeps the state where the sequence is now, at the cost
  // of a slot, in place of an earlier mark. rollback: drops all tokens but the first `tokens`, and goes back to the mark, if it
  // is not after them, or else to the beginning; what is between runs again.
  Result<void> extend(SequenceId id, std::span<const int32_t> tokens);
  Result<void> mark(SequenceId id);
  Result<void> rollback(SequenceId id, uint32_t tokens);

  // The state of a running sequence where it is now, for Request::state of another one. On a mesh: the part that this rank holds,
  // for the rank of the same tp and pp coordinates in some dp group; all ranks of a dp group call this together, and all get
  // their parts or none does. So it is with Request::state: a part that one rank refuses, or another position, is refused by all.
  Result<std::vector<std::byte>> save(SequenceId id);

  // One run of one entry, and the results of that run or of earlier ones. An error means that the run itself failed; the
  // sequences in it have failed with the same error, and all sequences when memory cannot be cleaned any more.
  Result<StepReport> step();

  // Takes the results of all runs that are under way. The calls above do it first: what they are told of a sequence is told of
  // all that it has drawn.
  Result<void> settle();

  // Steps until nothing is left to run, in other dp groups too.
  Result<void> finish();

  bool idle() const; // nothing to run, no results to wait for; held sequences may be there
  size_t in_flight() const { return waiting.size() + running.size(); }

  // The output of a finished sequence, once; nothing for others.
  std::optional<Output> take(SequenceId id);

  // Ends a sequence that has not finished; nothing of it is kept.
  void cancel(SequenceId id);
  // Gives up all kept states.
  void forget();

  const BlockManager &blocks() const { return block_pool; }
  const StateManager &slots() const { return state_pool; }
  const Counters &counters() const { return counted; }
  // Null when there is none; for tests.
  const Sequence *find(SequenceId id) const;
  const KeptStates &kept_states() const { return kept; }

private:
  using Owned = std::unique_ptr<Sequence>;

  // engine.cpp
  Result<Owned> check(Request request, std::vector<int32_t> tokens);
  Sequence *held(SequenceId id, Result<void> &error);

  // engine_step.cpp: what runs, and what comes of it
  bool choose();
  bool schedule();
  Result<void> run_batch();
  Result<uint32_t> take_oldest();
  uint32_t advance(Sequence &sequence, const Batch &batch, uint32_t logits, uint32_t logit_row);
  void draw(Sequence &sequence, int32_t id);
  void end(Sequence &sequence, Finish finish, std::optional<Error> error = {});
  void fail_non_finite(Sequence &sequence, std::string reason);
  void collect();
  uint32_t awaiting() const;

  // engine_memory.cpp: who owns which blocks and slots
  void admit();
  bool room_for(const Sequence &sequence, uint32_t promised, uint32_t &need);
  void begin(Sequence &sequence);
  Result<uint32_t> restore(Sequence &sequence);
  Result<void> prepare(Sequence &sequence, uint32_t length);
  void commit(Sequence &sequence);
  void keep(Sequence &sequence);
  bool finite(Sequence &sequence);
  void go_to_mark(Sequence &sequence);
  bool make_room();
  bool idle_memory_holds(uint32_t blocks) const;
  bool release_idle();
  void to_waiting(size_t index);
  void drop_mark(Sequence &sequence);
  void release(Sequence &sequence, bool scrub = false);
  void release_kept(KeptState state);
  void clean(bool scrub);

  // A run whose results have not been taken: its sequences with logits, and how many rows of them each has.
  struct Run {
    explicit Run(const ModelFacts &model) : batch(model) {}
    Batch batch;
    std::vector<std::pair<SequenceId, uint32_t>> awaited;
  };
  Run &run_at(uint32_t place) { return runs[(first_run + place) % runs.size()]; }

  static StatePlace place(const Sequence &s) { return {s.table, s.slot, s.done}; }

  Executor &executor;
  const ModelFacts &model;
  EngineOptions options;
  BlockManager block_pool;
  StateManager state_pool;
  KeptStates kept;
  Scheduler scheduler;
  std::vector<Run> runs; // as many as may be under way, in turn
  uint32_t first_run = 0, under_way = 0;
  Work work;
  std::vector<Candidate> candidates;
  std::deque<Owned> waiting;  // in order of arrival
  std::vector<Owned> running; // in order of arrival
  std::unordered_map<SequenceId, Output> outputs;
  std::vector<int32_t> freed_blocks, freed_slots; // since the last clean()
  std::optional<Error> broken;                    // of a device that could not clean memory
  SequenceId next_id = 1;
  uint64_t steps = 0;
  Counters counted;
};

} // namespace k31::engine
