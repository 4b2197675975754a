#include "runtime/engine/session_executor.h"
#include "runtime/base/cat.h"
#include "runtime/schema/plan_generated.h"

namespace k31::engine {
namespace {

bool has_input(const plan::Entry &entry, std::string_view name) {
  for (const plan::Binding *binding : *entry.inputs())
    if (binding->name()->string_view() == name)
      return true;
  return false;
}

} // namespace

Result<ModelFacts> facts_of(const plan::Plan &plan) {
  const plan::Model &source = *plan.model();
  const plan::StateGroup &state = *plan.state();
  if (source.layer_begin() != 0 || source.layer_end() != source.layers())
    return fail(Code::unsupported, cat("the plan holds layers ", source.layer_begin(), " to ", source.layer_end(), " of ",
                                       source.layers(), "; text needs a plan of all layers"));
  if (plan.mesh()->pp() != 1)
    return fail(Code::unsupported,
                cat("the plan has ", plan.mesh()->pp(), " pipeline stages; this engine runs plans of one stage"));
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
  for (const plan::Entry *entry : *plan.entries())
    model.entries.push_back({entry->name()->str(), entry->kind() == plan::EntryKind::decode, entry->rows(), entry->segments(),
                             entry->logit_rows(), has_input(*entry, "mask"), has_input(*entry, "bias")});
  return model;
}

Result<SessionExecutor> SessionExecutor::make(Session &session) {
  K31_ASSIGN(ModelFacts facts, facts_of(session.plan()));
  return SessionExecutor(session, std::move(facts));
}

} // namespace k31::engine
