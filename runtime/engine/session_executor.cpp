#include "runtime/engine/session_executor.h"
#include "runtime/base/cat.h"
#include "runtime/comm/communicator.h"
#include "runtime/schema/plan_generated.h"
#include <algorithm>
#include <numeric>
#include <tuple>

namespace k31::engine {
namespace {

bool has(const flatbuffers::Vector<flatbuffers::Offset<plan::Binding>> &bindings, std::string_view name) {
  return std::any_of(bindings.begin(), bindings.end(),
                     [&](const plan::Binding *binding) { return binding->name()->string_view() == name; });
}

// Drawn ids are few bytes; logits are many, and all stages wait for each other to move them.
bool posted(const NamedOutput &output) { return output.bytes.size() <= comm::Group::kPostBytes; }

} // namespace

Result<ModelFacts> facts_of(const plan::Plan &plan, uint32_t stage, std::vector<uint32_t> *in_plan) {
  const plan::Model &source = *plan.model();
  const plan::StateGroup &state = *plan.state();
  if (source.layer_begin() != 0 || source.layer_end() != source.layers())
    return fail(Code::unsupported, cat("the plan holds layers ", source.layer_begin(), ":", source.layer_end(), " of ",
                                       source.layers(), "; text needs a plan of all layers"));
  ModelFacts model;
  model.vocab = source.vocab();
  model.max_context = source.max_context();
  model.block_tokens = state.block_tokens();
  model.blocks = state.blocks();
  model.slots = state.slots();
  if (!model.vocab || !model.max_context || !model.block_tokens || !model.blocks || !model.slots)
    return fail(Code::invalid_input,
                cat("the plan has vocabulary ", model.vocab, ", context ", model.max_context, ", blocks of ", model.block_tokens,
                    ", ", model.blocks, " blocks, ", model.slots, " slots; none may be zero"));
  model.table_blocks = (model.max_context - 1) / model.block_tokens + 1;
  if (source.eos())
    model.eos.assign(source.eos()->begin(), source.eos()->end());
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const plan::Entry *entry = plan.entries()->Get(i);
    if (entry->stage() != stage)
      continue;
    model.entries.push_back({entry->name()->str(), entry->kind() == plan::EntryKind::decode, entry->rows(), entry->segments(),
                             entry->logit_rows(), has(*entry->inputs(), "mask"), has(*entry->inputs(), "bias")});
    if (in_plan)
      in_plan->push_back(i);
  }
  return model;
}

Result<SessionExecutor> SessionExecutor::make(Session &session, uint32_t rank) {
  std::vector<uint32_t> in_plan;
  const uint32_t stage = coordinate(*session.plan().mesh(), plan::MeshAxis::pp, rank);
  K31_ASSIGN(ModelFacts facts, facts_of(session.plan(), stage, &in_plan));
  SessionExecutor made(session, std::move(facts));
  made.in_plan = std::move(in_plan);
  made.model.depth = std::min(session.plan().mesh()->pp(), comm::Group::kPosts);
  made.by_size.resize(made.model.entries.size());
  std::iota(made.by_size.begin(), made.by_size.end(), 0);
  std::stable_sort(made.by_size.begin(), made.by_size.end(), [&](uint32_t a, uint32_t b) {
    const EntryFacts &x = made.model.entries[a], &y = made.model.entries[b];
    return std::tie(x.rows, x.segments, x.logit_rows) < std::tie(y.rows, y.segments, y.logit_rows);
  });
  made.present.reserve(16);
  return made;
}

StateMemory &SessionExecutor::state() {
  if (!memory)
    memory.emplace(layout_of(session->plan(), session->communicator()->rank()), *session->memory());
  return *memory;
}

// The worst that a rank found decides: a rank that alone ended the sequence would leave the others waiting for it.
Result<std::string> SessionExecutor::non_finite(const StatePlace &place) {
  enum : uint64_t { fine, broken, unread };
  Result<std::string> found = state().non_finite(place);
  uint64_t worst = !found ? unread : found->empty() ? fine : broken;
  for (const plan::MeshAxis axis : {plan::MeshAxis::tp, plan::MeshAxis::pp})
    if (comm::Group &group = session->communicator()->group(axis); group.size() > 1) {
      K31_ASSIGN(worst, comm::largest(group, worst));
    }
  if (worst == unread && found)
    return fail(Code::io, "another rank could not read its part of the state");
  if (worst == broken && found->empty())
    return std::string("the part of another rank");
  return found;
}

Result<uint32_t> SessionExecutor::agree_position(Result<uint32_t> position) {
  const uint64_t mine = position ? uint64_t(*position) : 0; // 0: none
  uint64_t most = mine, least = ~mine;                      // the least as the largest complement
  for (const plan::MeshAxis axis : {plan::MeshAxis::tp, plan::MeshAxis::pp})
    if (comm::Group &group = session->communicator()->group(axis); group.size() > 1) {
      K31_ASSIGN(most, comm::largest(group, most));
      K31_ASSIGN(least, comm::largest(group, least));
    }
  least = ~least;
  if (position && least != most)
    return fail(Code::invalid_input, least == 0
                                         ? std::string("saved state: another rank refuses its part; run the tokens again instead")
                                         : cat("saved state: the parts of the ranks are of ", least, " to ", most,
                                               " positions, expected those of one state; run the tokens again instead"));
  return position;
}

// The largest entry that a group wants: every group can put its work, or a part of it, into a larger one.
Result<std::optional<uint32_t>> SessionExecutor::agree(std::optional<uint32_t> entry) {
  const comm::Communicator *communicator = session->communicator();
  if (!communicator || communicator->group(plan::MeshAxis::dp).size() == 1)
    return entry;
  const uint64_t mine = entry ? uint64_t(std::find(by_size.begin(), by_size.end(), *entry) - by_size.begin()) + 1 : 0;
  K31_ASSIGN(const uint64_t most, comm::largest(communicator->group(plan::MeshAxis::dp), mine));
  return most ? std::optional(by_size[most - 1]) : std::nullopt;
}

Result<void> SessionExecutor::run(uint32_t entry, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs) {
  const uint32_t number = in_plan[entry];
  const comm::Communicator *communicator = session->communicator();
  if (!communicator || communicator->group(plan::MeshAxis::pp).size() == 1)
    return session->run(number, inputs, outputs);
  const plan::Entry &bindings = *session->plan().entries()->Get(number);
  present.clear();
  for (const NamedInput &input : inputs)
    if (has(*bindings.inputs(), input.name))
      present.push_back(input);
  // The last stage has the logits and draws; the other stages learn what it drew, when they ask for it: the last one does not
  // wait for that, and begins with the next run.
  comm::Group &stages = communicator->group(plan::MeshAxis::pp);
  const bool last = stages.rank() + 1 == stages.size();
  K31_TRY(session->run(number, present, last ? outputs : std::span<const NamedOutput>()));
  for (const NamedOutput &output : outputs)
    if (last && posted(output))
      K31_TRY(stages.post(output.bytes));
  return {};
}

Result<void> SessionExecutor::fetch(std::span<const NamedOutput> outputs) {
  const comm::Communicator *communicator = session->communicator();
  if (!communicator || communicator->group(plan::MeshAxis::pp).size() == 1)
    return {};
  comm::Group &stages = communicator->group(plan::MeshAxis::pp);
  const uint32_t last = stages.size() - 1;
  for (const NamedOutput &output : outputs)
    if (!posted(output))
      K31_TRY(stages.broadcast(output.bytes, last));
    else if (stages.rank() != last)
      K31_TRY(stages.collect(output.bytes, last));
  return {};
}

} // namespace k31::engine
