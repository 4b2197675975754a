// Inputs of one run of an entry, without the engine: for tools that choose entries, positions and batches themselves. Plans of a
// slice of the model take rows of made-up hidden states in place of tokens.
#pragma once
#include "runtime/schema/plan_generated.h"
#include "runtime/session.h"

namespace k31::run {

// Tokens of one sequence. Sequence s has state slot s and the cache blocks that follow those of sequence s - 1.
struct Part {
  uint32_t sequence = 0;
  uint32_t start = 0;              // position of the first token
  uint32_t length = 0;             // tokens
  uint32_t logits = 0;             // of the last so many tokens
  const int32_t *tokens = nullptr; // null: made up
};

class EntryInputs {
public:
  // `positions`: most positions of a sequence. Refuses a plan whose caches cannot hold `sequences` of them. `stage`: pipeline
  // stage whose entries are run.
  static Result<EntryInputs> make(const plan::Plan &plan, uint32_t sequences, uint64_t positions, uint32_t stage = 0);

  // The smallest entry of this kind that holds so much, or an error that says what the plan has.
  Result<uint32_t> choose(plan::EntryKind kind, uint32_t rows, uint32_t segments) const;

  // Inputs of a run; they stay valid until the next call.
  const std::vector<NamedInput> &fill(uint32_t entry, std::span<const Part> parts);

  uint32_t live_rows() const { return uint32_t(counts[0]); }
  uint32_t live_segments() const { return uint32_t(counts[1]); }
  uint32_t live_logit_rows() const { return uint32_t(counts[2]); }

private:
  explicit EntryInputs(const plan::Plan &plan) : plan(&plan) {}
  void made_up_stream(const plan::Entry &entry, const char *name);

  const plan::Plan *plan;
  uint32_t stage = 0;
  uint32_t blocks = 0, table_blocks = 0; // of a sequence: used, and columns of the table
  int32_t counts[4] = {};
  std::vector<int32_t> tokens, segments, row_segment, block_table, logit_rows;
  std::vector<std::byte> sampling, mask, bias;
  std::vector<std::pair<std::string, std::vector<std::byte>>> streams; // hidden and bank by entry
  std::vector<NamedInput> inputs;
};

// The largest entry of a kind, in rows; null when the plan has none.
const plan::Entry *largest(const plan::Plan &plan, plan::EntryKind kind);

} // namespace k31::run
