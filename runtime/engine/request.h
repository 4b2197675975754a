// What the engine is asked for, and what it gives back.
#pragma once
#include "runtime/engine/batch.h"
#include <functional>
#include <memory>
#include <optional>

namespace k31::engine {

using SequenceId = uint64_t;

struct Request {
  std::vector<int32_t> tokens; // the prompt, at least one
  uint32_t max_tokens = 0;     // to draw; 0: the prompt runs and nothing is drawn
  Sampling sampling;
  std::vector<int32_t> stop; // ids that end the sequence; the id itself is kept in the output

  // Positions at which the state is kept for later sequences that begin with the same tokens: the end of a system prompt, say.
  // Only with EngineOptions::kept_states.
  std::vector<uint32_t> keep;
  // A state that Engine::save gave for the first of these tokens, to start from.
  std::shared_ptr<const std::vector<std::byte>> state;
  // The sequence draws nothing and does not end by itself: extend(), mark(), rollback() and fork() drive it until cancel().
  bool hold = false;

  // Called during step(). They must not call the engine.
  std::function<void(int32_t id)> on_token;
  // When set: the logits of every position that runs (the prompt, and all drawn tokens but the last), once each and in order. The
  // span is valid during the call.
  std::function<void(uint64_t position, std::span<const float> logits)> on_logits;
};

enum class Finish {
  length,  // max_tokens were drawn
  stop,    // a stop id was drawn
  context, // the plan's context is full
  failed,  // see Output::error
};

struct Output {
  std::vector<int32_t> tokens; // drawn
  Finish finish = Finish::failed;
  std::optional<Error> error;
};

} // namespace k31::engine
