// A plan and its checkpoint, opened: what every command starts with.
#pragma once
#include "runtime/engine/session_executor.h"
#include "runtime/text/tokenizer.h"
#include <CLI/CLI.hpp>
#include <chrono>

namespace k31::run {

struct ModelOptions {
  std::string plan;
  std::string weights;
  int threads = 0;
  bool verbose = false;
  bool check_launches = false;

  void add_to(CLI::App &app);
};

struct Model {
  std::unique_ptr<Session> session;
  std::unique_ptr<engine::SessionExecutor> executor;
  double load_seconds = 0, bind_seconds = 0;

  const engine::ModelFacts &facts() const { return executor->facts(); }

  // Sequences are dealt out to the dp groups in turn: whether this rank's group runs sequence number `sequence`.
  bool runs(size_t sequence) const;
  // From the ranks that run the sequence to all others; every rank calls it, in the same order.
  Result<void> share(size_t sequence, std::span<std::byte> bytes) const;
  Result<void> share(size_t sequence, std::vector<std::byte> &bytes) const; // of any length
};

// Load: quick, so that everything else can be refused before the weights are read.
Result<Model> load_model(const ModelOptions &options);

// Bind; progress of the weights on a terminal.
Result<void> bind_model(Model &model, const ModelOptions &options);

// The checkpoint's tokenizer; refuses one with ids that the plan does not have.
Result<text::Tokenizer> open_tokenizer(const ModelOptions &options, const engine::ModelFacts &facts);

// True when a summary on stderr is wanted: it is a terminal, or --verbose was given.
bool wants_summary(const ModelOptions &options);

// True when stderr is a terminal, so that a line may be written over.
bool on_terminal();

class Clock {
public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

private:
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

} // namespace k31::run
