// A bound session as the engine's executor: on a mesh, one rank of many. Every rank has an engine of its own; those of a dp group
// do the same, since they have the same requests and draw the same ids. What dp groups agree on, what the last pipeline stage
// alone knows, and whether each part of a state is finite, goes over the communicators of the host.
#pragma once
#include "runtime/engine/executor.h"

namespace k31::engine {

class SessionExecutor : public Executor {
public:
  // The session is bound before the first run; `rank` of the plan's mesh.
  static Result<SessionExecutor> make(Session &session, uint32_t rank = 0);

  const ModelFacts &facts() const override { return model; }
  StateMemory &state() override;
  Result<std::string> non_finite(const StatePlace &place) override;
  Result<uint32_t> agree_position(Result<uint32_t> position) override;
  Result<std::optional<uint32_t>> agree(std::optional<uint32_t> entry) override;
  Result<void> run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) override;
  Result<void> fetch(std::span<const NamedOutput> outputs) override;

private:
  SessionExecutor(Session &session, ModelFacts facts) : session(&session), model(std::move(facts)) {}

  Session *session;
  ModelFacts model; // entries of this rank's stage; those of the others are the same but for inputs and outputs
  std::optional<StateMemory> memory;
  std::vector<uint32_t> in_plan;   // by entry of the model: its number in the plan
  std::vector<uint32_t> by_size;   // entries of the model, the smallest first
  std::vector<NamedInput> present; // inputs that the entry has
};

// The engine's view of a plan, for ranks of one pipeline stage. Load has checked the plan against the entry contract; plans of a
// slice of the model are refused here. `in_plan`, when given, gets each entry's number in the plan.
Result<ModelFacts> facts_of(const plan::Plan &plan, uint32_t stage = 0, std::vector<uint32_t> *in_plan = nullptr);

} // namespace k31::engine
