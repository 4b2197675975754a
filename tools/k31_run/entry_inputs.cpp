#include "tools/k31_run/entry_inputs.h"
#include "runtime/base/cat.h"
#include "runtime/weights/source.h"
#include <algorithm>
#include <cstring>

namespace k31::run {

static const plan::Binding *find(const plan::Entry &entry, std::string_view name) {
  for (const plan::Binding *binding : *entry.inputs())
    if (binding->name()->string_view() == name)
      return binding;
  return nullptr;
}

const plan::Entry *largest(const plan::Plan &plan, plan::EntryKind kind) {
  const plan::Entry *best = nullptr;
  for (const plan::Entry *entry : *plan.entries())
    if (entry->kind() == kind && (!best || entry->rows() > best->rows()))
      best = entry;
  return best;
}

Result<EntryInputs> EntryInputs::make(const plan::Plan &plan, uint32_t sequences, uint64_t positions, uint32_t stage) {
  const plan::StateGroup &state = *plan.state();
  const uint32_t context = plan.model()->max_context(), block = state.block_tokens();
  if (positions > context)
    return fail(Code::invalid_input, cat(positions, " positions of a sequence, and the plan serves ", context,
                                         "; shorten the run or compile with a larger --max-context"));
  if (sequences > state.slots())
    return fail(Code::invalid_input, cat(sequences, " sequences, and the plan holds ", state.slots(),
                                         "; give a smaller --batch or compile with a larger --max-batch"));
  EntryInputs made(plan);
  made.stage = stage;
  made.blocks = uint32_t((positions + block - 1) / block);
  made.table_blocks = (context + block - 1) / block;
  if (uint64_t(made.blocks) * sequences > state.blocks())
    return fail(Code::out_of_memory,
                cat(sequences, " sequences of ", positions, " positions need ", uint64_t(made.blocks) * sequences,
                    " cache blocks of ", block, " positions, and the plan has ", state.blocks(),
                    "; compile with a larger --cache-tokens"));
  return made;
}

Result<uint32_t> EntryInputs::choose(plan::EntryKind kind, uint32_t rows, uint32_t segments) const {
  const plan::Entry *best = nullptr;
  uint32_t number = 0;
  for (uint32_t i = 0; i < plan->entries()->size(); ++i)
    if (const plan::Entry *entry = plan->entries()->Get(i); entry->stage() == stage && entry->kind() == kind &&
                                                            entry->rows() >= rows && entry->segments() >= segments &&
                                                            (!best || entry->rows() < best->rows()))
      best = entry, number = i;
  if (best)
    return number;
  const plan::Entry *most = largest(*plan, kind);
  return fail(
      Code::invalid_input,
      cat("no ", plan::EnumNameEntryKind(kind), " entry holds ", rows, " rows of ", segments, " sequences; ",
          most ? cat("the largest one holds ", most->rows(), " of ", most->segments()) : std::string("the plan has none")));
}

// Rows of about normal values. Row r of a source is the same in entries of any capacity.
void EntryInputs::made_up_stream(const plan::Entry &entry, const char *name) {
  const plan::Binding *binding = find(entry, name);
  if (!binding)
    return;
  const std::string key = entry.name()->str() + "." + name;
  auto known = std::find_if(streams.begin(), streams.end(), [&](const auto &stream) { return stream.first == key; });
  if (known == streams.end()) {
    uint64_t bytes = binding->dtype() == plan::DType::bf16 ? 2 : 4;
    for (const uint64_t extent : *binding->shape())
      bytes *= extent;
    known = streams.insert(streams.end(), {key, std::vector<std::byte>(bytes)});
    const uint64_t sources = binding->shape()->size() == 3 ? binding->shape()->Get(0) : 1;
    for (uint64_t s = 0; s < sources; ++s)
      weights::fill_normal(std::span(known->second).subspan(bytes / sources * s, bytes / sources), binding->dtype(), 1,
                           binding->shape()->size() == 3 ? s + 2 : 1);
  }
  inputs.push_back({name, known->second});
}

const std::vector<NamedInput> &EntryInputs::fill(uint32_t number, std::span<const Part> parts) {
  const plan::Entry &entry = *plan->entries()->Get(number);
  tokens.clear(), segments.clear(), logit_rows.clear();
  row_segment.assign(entry.rows(), -1);
  block_table.assign(parts.size() * table_blocks, -1);
  const bool head = find(entry, "logit_rows");
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part &part = parts[i];
    const int32_t row = int32_t(tokens.size()), slot = int32_t(part.sequence);
    segments.insert(segments.end(),
                    {row, int32_t(part.length), int32_t(part.start), part.start ? slot : -1 /* the zero state */, slot, 0});
    for (uint32_t t = 0; t < part.length; ++t)
      tokens.push_back(part.tokens
                           ? part.tokens[t]
                           : int32_t((uint64_t(part.start + t) * 2654435761u + part.sequence * 40503u) % plan->model()->vocab()));
    std::fill_n(row_segment.begin() + row, part.length, int32_t(i));
    for (uint32_t b = 0; b < blocks; ++b)
      block_table[i * table_blocks + b] = int32_t(part.sequence * blocks + b);
    for (uint32_t t = part.length - std::min(part.logits, part.length); head && t < part.length; ++t)
      if (logit_rows.size() < entry.logit_rows())
        logit_rows.push_back(row + int32_t(t));
  }
  counts[0] = int32_t(tokens.size()), counts[1] = int32_t(parts.size()), counts[2] = int32_t(logit_rows.size());
  inputs.clear();
  const auto bytes = [](const auto &values) { return std::as_bytes(std::span(values)); };
  const auto give = [&](const char *name, std::span<const std::byte> values) {
    if (find(entry, name))
      inputs.push_back({name, values});
  };
  give("tokens", bytes(tokens));
  give("counts", bytes(counts));
  give("segments", bytes(segments));
  give("row_segment", bytes(row_segment));
  give("block_table", bytes(block_table));
  give("logit_rows", bytes(logit_rows));
  sampling.assign(logit_rows.size() * 24, std::byte(0)); // temperature 0
  const float top_p = 1;
  for (size_t l = 0; l < logit_rows.size(); ++l)
    memcpy(sampling.data() + l * 24 + 4, &top_p, 4);
  give("sampling", sampling);
  mask.assign(find(entry, "mask") ? logit_rows.size() * plan->model()->vocab() : 0, std::byte(1));
  give("mask", mask);
  bias.assign(find(entry, "bias") ? logit_rows.size() * plan->model()->vocab() * 4 : 0, std::byte(0));
  give("bias", bias);
  made_up_stream(entry, "hidden");
  made_up_stream(entry, "bank");
  return inputs;
}

} // namespace k31::run
