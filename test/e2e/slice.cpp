// k31-e2e slice: rows of hidden states as one new sequence through a plan that starts after layer 0 and ends before the last.
// Inputs "hidden" [T, H] and "bank" [K, T, H]; writes the outputs by name, live rows, and the sequence's KDA state, all F32.
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/schema/plan_generated.h"
#include "test/e2e/e2e.h"
#include <algorithm>

namespace k31::e2e {
namespace {

// Outer extents of [.., T, H] are sources; each has room for `rows` rows of which `live` are used.
struct Stack {
  uint64_t sources, rows, row_bytes;
  static Stack of(const plan::Binding &binding) {
    const auto &shape = *binding.shape();
    return {shape.size() == 3 ? shape.Get(0) : 1, shape.Get(shape.size() - 2), shape.Get(shape.size() - 1) * 4};
  }
};

} // namespace

Result<void> slice(const Options &options) {
  K31_ASSIGN(const auto session, open(options));
  K31_ASSIGN(const std::vector<TensorInfo> tensors, read_safetensors(options.inputs));
  K31_ASSIGN(const FileBytes file, FileBytes::read(options.inputs, uint64_t(1) << 40));
  const auto given = [&](std::string_view name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo &t) { return t.name == name; });
  };
  if (given("hidden") == tensors.end())
    return fail(Code::invalid_input, options.inputs + " has no tensor 'hidden'");
  const uint64_t live = given("hidden")->shape.at(0);
  for (uint32_t number = 0; number < session->plan().entries()->size(); ++number) {
    const plan::Entry &entry = *session->plan().entries()->Get(number);
    if (entry.kind() != plan::EntryKind::prefill || entry.rows() < live)
      continue;
    const int32_t counts[] = {int32_t(live), 1, 0, 0}, segments[] = {0, int32_t(live), 0, -1, 0, 0}, table[] = {0};
    std::vector<int32_t> row_segment(entry.rows(), -1);
    std::fill_n(row_segment.begin(), live, 0);
    std::vector<NamedInput> inputs = {{"counts", std::as_bytes(std::span(counts))},
                                      {"segments", std::as_bytes(std::span(segments))},
                                      {"row_segment", std::as_bytes(std::span(row_segment))},
                                      {"block_table", std::as_bytes(std::span(table))}};
    std::deque<std::vector<std::byte>> buffers;
    for (const plan::Binding *binding : *entry.inputs()) {
      const auto tensor = given(binding->name()->string_view());
      if (tensor == tensors.end())
        continue;
      const Stack stack = Stack::of(*binding);
      if (tensor->end - tensor->begin != stack.sources * live * stack.row_bytes)
        return fail(Code::invalid_input, cat(tensor->name, " has ", tensor->end - tensor->begin, " bytes, expected ",
                                             stack.sources * live * stack.row_bytes));
      std::vector<std::byte> &buffer = buffers.emplace_back(stack.sources * stack.rows * stack.row_bytes, std::byte(0xff));
      for (uint64_t s = 0; s < stack.sources; ++s)
        memcpy(buffer.data() + s * stack.rows * stack.row_bytes, file.bytes().data() + tensor->begin + s * live * stack.row_bytes,
               live * stack.row_bytes);
      inputs.push_back({binding->name()->c_str(), buffer});
    }
    std::vector<NamedOutput> outputs;
    std::deque<std::vector<std::byte>> results;
    for (const plan::Binding *binding : *entry.outputs()) {
      const Stack stack = Stack::of(*binding);
      outputs.push_back({binding->name()->c_str(), results.emplace_back(stack.sources * stack.rows * stack.row_bytes)});
    }
    K31_TRY(session->run(number, inputs, outputs));
    Tensors out;
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      const Stack stack = Stack::of(*entry.outputs()->Get(i));
      for (uint64_t s = 0; s < stack.sources; ++s)
        out.append(outputs[i].name, outputs[i].bytes.subspan(s * stack.rows * stack.row_bytes, live * stack.row_bytes),
                   stack.row_bytes, true);
    }
    for (const plan::StateMember *member : *session->plan().state()->members())
      if (member->kind() == plan::StateKind::kda)
        out.append("kda", session->arena(member->arena()).subspan(member->offset(), member->unit_bytes()), member->unit_bytes(),
                   true);
    return out.write(options.out);
  }
  return fail(Code::unsupported, cat("the plan has no prefill entry for ", live, " rows"));
}

} // namespace k31::e2e
