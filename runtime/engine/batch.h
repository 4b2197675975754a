// The inputs and outputs of one run, in buffers that are made once and reused.
#pragma once
#include "runtime/engine/block_manager.h"
#include "runtime/engine/executor.h"
#include <array>

namespace k31::engine {

struct Sampling {
  float temperature = 0; // 0: the most likely id
  float top_p = 1;       // (0, 1]
  uint64_t seed = 0;
};

class Batch {
public:
  explicit Batch(const ModelFacts &model);

  void clear(uint32_t entry);

  // A segment: tokens [start, start + length) of a sequence whose state is read from slot_in (unused when start is 0) and written
  // to slot_out; logits for its last `logits` rows. `drawn` is how many tokens were drawn before in this sequence.
  void add(std::span<const int32_t> tokens, uint32_t start, int32_t slot_in, int32_t slot_out, const BlockTable &table,
           uint32_t logits, const Sampling &sampling, uint64_t drawn);

  // Runs what was added. Logits are read only when wanted. What was drawn is there after fetch(), which a batch without rows that
  // want logits does without.
  Result<void> run(Executor &executor, bool want_logits);
  Result<void> fetch(Executor &executor);

  int32_t sampled(uint32_t logit_row) const { return sampled_ids[logit_row]; }
  std::span<const float> logits(uint32_t logit_row) const {
    return std::span(logit_values).subspan(size_t(logit_row) * model.vocab, model.vocab);
  }

private:
  struct SamplingRow { // u8 [24] of the entry contract
    float temperature, top_p;
    uint64_t seed, counter;
  };
  static_assert(sizeof(SamplingRow) == 24);

  const ModelFacts &model;
  uint32_t entry = 0;
  uint32_t rows = 0, segments = 0, logit_rows = 0; // live
  std::vector<int32_t> tokens, segment_table, row_segment, block_table, logit_row_ids, sampled_ids;
  std::vector<SamplingRow> sampling_rows;
  std::vector<float> logit_values; // made on the first use: a large vocabulary makes it big
  std::array<NamedOutput, 2> outputs{};
  size_t read = 0;                   // of them
  std::vector<std::byte> mask, bias; // all ids allowed, nothing added
};

} // namespace k31::engine
