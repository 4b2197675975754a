// A bound session as the engine's executor.
#pragma once
#include "runtime/engine/executor.h"

namespace k31::engine {

class SessionExecutor : public Executor {
public:
  static Result<SessionExecutor> make(Session &session);

  const ModelFacts &facts() const override { return model; }
  StateMemory &state() override {
    if (!memory)
      memory.emplace(layout_of(session->plan()), *session->memory());
    return *memory;
  }
  Result<void> run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) override {
    return session->run(entry, inputs, outputs);
  }

private:
  SessionExecutor(Session &session, ModelFacts facts) : session(&session), model(std::move(facts)) {}
  Session *session;
  ModelFacts model;
  std::optional<StateMemory> memory;
};

// The engine's view of a plan. Load has checked it against the entry contract; plans of a slice of the model are refused here.
Result<ModelFacts> facts_of(const plan::Plan &plan);

} // namespace k31::engine
