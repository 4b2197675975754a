#include "runtime/engine/batch.h"
#include <algorithm>

namespace k31::engine {
namespace {

template <class T> std::span<const std::byte> first(const std::vector<T> &values, size_t count) {
  return std::as_bytes(std::span(values).first(count));
}
template <class T> std::span<std::byte> first_writable(std::vector<T> &values, size_t count) {
  return std::as_writable_bytes(std::span(values).first(count));
}

constexpr size_t segment_fields = 6; // row_begin, length, start, slot_in, slot_out, 0

} // namespace

Batch::Batch(const ModelFacts &model) : model(model) {
  size_t T = 0, S = 0, L = 0, masked = 0, biased = 0;
  for (const EntryFacts &entry : model.entries) {
    T = std::max<size_t>(T, entry.rows);
    S = std::max<size_t>(S, entry.segments);
    L = std::max<size_t>(L, entry.logit_rows);
    masked = std::max<size_t>(masked, entry.mask ? entry.logit_rows : 0);
    biased = std::max<size_t>(biased, entry.bias ? entry.logit_rows : 0);
  }
  tokens.resize(T);
  row_segment.resize(T);
  segment_table.resize(S * segment_fields);
  block_table.resize(S * model.table_blocks);
  logit_row_ids.resize(L);
  sampled_ids.resize(L);
  sampling_rows.resize(L);
  mask.assign(masked * model.vocab, std::byte(1));
  bias.assign(biased * model.vocab * sizeof(float), std::byte(0));
}

void Batch::clear(uint32_t next_entry) {
  entry = next_entry;
  rows = segments = logit_rows = 0;
}

void Batch::add(std::span<const int32_t> ids, uint32_t start, int32_t slot_in, int32_t slot_out, const BlockTable &table,
                uint32_t logits, const Sampling &sampling, uint64_t drawn) {
  const uint32_t length = uint32_t(ids.size());
  if (!start)
    slot_in = -1; // a sequence starts from the zero state
  const std::array<int32_t, segment_fields> fields = {int32_t(rows), int32_t(length), int32_t(start), slot_in, slot_out, 0};
  std::copy(fields.begin(), fields.end(), segment_table.begin() + int64_t(segments * segment_fields));
  std::copy(ids.begin(), ids.end(), tokens.begin() + rows);
  std::fill_n(row_segment.begin() + rows, length, int32_t(segments));
  // Blocks that are not there yet are -1: reading one is an error of the kernel, and should look like one.
  const auto row = block_table.begin() + int64_t(size_t(segments) * model.table_blocks);
  std::fill(std::copy(table.begin(), table.end(), row), row + model.table_blocks, -1);
  for (uint32_t i = length - logits; i < length; ++i) {
    logit_row_ids[logit_rows] = int32_t(rows + i);
    sampling_rows[logit_rows] = {sampling.temperature, sampling.top_p, sampling.seed, drawn};
    ++logit_rows;
  }
  rows += length;
  ++segments;
}

Result<void> Batch::run(Executor &executor, bool want_logits) {
  const EntryFacts &facts = model.entries[entry];
  const size_t V = model.vocab;
  std::fill(row_segment.begin() + rows, row_segment.begin() + facts.rows, -1);
  const std::array<int32_t, 4> counts = {int32_t(rows), int32_t(segments), int32_t(logit_rows), 0};
  std::array<NamedInput, 9> inputs = {{{"tokens", first(tokens, rows)},
                                       {"counts", std::as_bytes(std::span(counts))},
                                       {"segments", first(segment_table, segments * segment_fields)},
                                       {"row_segment", first(row_segment, facts.rows)},
                                       {"block_table", first(block_table, size_t(segments) * model.table_blocks)}}};
  size_t used = 5;
  if (logit_rows) {
    inputs[used++] = {"logit_rows", first(logit_row_ids, logit_rows)};
    inputs[used++] = {"sampling", first(sampling_rows, logit_rows)};
    if (facts.mask)
      inputs[used++] = {"mask", first(mask, logit_rows * V)};
    if (facts.bias)
      inputs[used++] = {"bias", first(bias, logit_rows * V * sizeof(float))};
  }
  read = 0;
  if (logit_rows) {
    outputs[read++] = {"sampled", first_writable(sampled_ids, logit_rows)};
    if (want_logits) {
      logit_values.resize(std::max(logit_values.size(), sampled_ids.size() * V));
      outputs[read++] = {"logits", first_writable(logit_values, logit_rows * V)};
    }
  }
  return executor.run(entry, std::span(inputs).first(used), std::span(outputs).first(read));
}

Result<void> Batch::fetch(Executor &executor) { return executor.fetch(std::span(outputs).first(read)); }

} // namespace k31::engine
