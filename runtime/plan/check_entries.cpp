// Entries: capacities, the tensors that the engine writes and reads, and their commands. runtime/schema/README.md has the table.
#include "runtime/plan/check.h"
#include <algorithm>

namespace k31::check {
namespace {

using Shape = std::vector<uint64_t>;
constexpr uint64_t kAny = ~uint64_t(0); // any extent, in an expected shape

// Far above every real plan; keeps look-ups by name cheap on a hostile one.
constexpr uint32_t kMaxEntries = 4096, kMaxBindings = 64;

std::string text(const plan::DType type, const Shape &shape) {
  std::string out = cat(name_of(type, plan::EnumNameDType), " [");
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + (shape[i] == kAny ? "any" : std::to_string(shape[i]));
  return out + "]";
}

using Bindings = flatbuffers::Vector<flatbuffers::Offset<plan::Binding>>;

const plan::Binding *find(const Bindings &bindings, std::string_view name) {
  for (const plan::Binding *binding : bindings)
    if (binding->name()->string_view() == name)
      return binding;
  return nullptr;
}

struct EntryChecker {
  const plan::Plan &plan;
  const plan::Entry &entry;
  std::string where;

  Result<void> binding(const plan::Binding &b, bool input) const {
    const std::string name = cat(where, ": ", input ? "input " : "output ", quote(b.name()->str()));
    if (!aligned(*b.shape()))
      return refuse(name + " has a shape that is not aligned to its size");
    uint64_t bytes = 0;
    if (!in_range(b.dtype(), plan::DType::MAX))
      return refuse(cat(name, " is of type ", int(b.dtype()), ", the last type is ", int(plan::DType::MAX)));
    if (b.arena() >= plan.arenas()->size())
      return refuse(cat(name, " is in arena ", b.arena(), " of ", plan.arenas()->size()));
    const plan::Arena &arena = *plan.arenas()->Get(b.arena());
    if (!tensor_bytes(*b.shape(), bytes_of(b.dtype()), &bytes) || !fits(b.offset(), bytes, arena.bytes()))
      return refuse(cat(name, ", ", text(b.dtype(), Shape(b.shape()->begin(), b.shape()->end())), ", at offset ", b.offset(),
                        " ends outside its arena of ", arena.bytes(), " bytes"));
    if (input && arena.kind() == plan::ArenaKind::weights)
      return refuse(name + " writes to the weights");
    if (arena.kind() == plan::ArenaKind::shared)
      return refuse(name + " is in an arena of kind shared, in which only areas of collectives by peer lie");
    return {};
  }

  Result<void> bindings(const Bindings &list, bool input) const {
    if (list.size() > kMaxBindings)
      return refuse(
          cat(where, " has ", list.size(), input ? " inputs" : " outputs", ", at most ", kMaxBindings, " are possible"));
    for (const plan::Binding *b : list) {
      K31_TRY(binding(*b, input));
      if (find(list, b->name()->string_view()) != b)
        return refuse(cat(where, ": two ", input ? "inputs" : "outputs", " are named ", quote(b->name()->str())));
    }
    return {};
  }

  Result<void> expect(const Bindings &list, std::string_view name, plan::DType type, const Shape &shape,
                      bool required = true) const {
    const plan::Binding *found = find(list, name);
    const char *side = &list == entry.inputs() ? "input " : "output ";
    if (!found)
      return required ? refuse(cat(where, " lacks the ", side, quote(name), ", ", text(type, shape))) : Result<void>();
    bool same = found->dtype() == type && found->shape()->size() == shape.size();
    for (uint32_t i = 0; same && i < shape.size(); ++i)
      same = shape[i] == kAny || found->shape()->Get(i) == shape[i];
    if (!same)
      return refuse(cat(where, ": the ", side, quote(name), " is ",
                        text(found->dtype(), Shape(found->shape()->begin(), found->shape()->end())), ", expected ",
                        text(type, shape)));
    return {};
  }

  Result<void> contract() const {
    const plan::Model &m = *plan.model();
    const uint64_t T = entry.rows(), S = entry.segments(), L = entry.logit_rows(), V = m.vocab(), H = m.hidden();
    const uint64_t B = (uint64_t(m.max_context()) + plan.state()->block_tokens() - 1) / plan.state()->block_tokens();
    const Bindings &in = *entry.inputs(), &out = *entry.outputs();
    K31_TRY(expect(in, "counts", plan::DType::i32, {4}));
    K31_TRY(expect(in, "segments", plan::DType::i32, {S, 6}));
    K31_TRY(expect(in, "row_segment", plan::DType::i32, {T}));
    K31_TRY(expect(in, "block_table", plan::DType::i32, {S, B}));

    // Under pp the stages between hand hidden rows to each other by send and recv.
    const bool first = m.layer_begin() == 0 && entry.stage() == 0;
    const bool last = m.layer_end() == m.layers() && entry.stage() + 1 == plan.mesh()->pp();
    const bool handed_in = m.layer_begin() > 0 && entry.stage() == 0,
               handed_out = m.layer_end() < m.layers() && entry.stage() + 1 == plan.mesh()->pp();
    K31_TRY(expect(in, "tokens", plan::DType::i32, {T}, first));
    K31_TRY(expect(in, "logit_rows", plan::DType::i32, {L}, last && L > 0));
    K31_TRY(expect(in, "sampling", plan::DType::u8, {L, 24}, last && L > 0));
    K31_TRY(expect(in, "mask", plan::DType::u8, {L, V}, false));
    K31_TRY(expect(in, "bias", plan::DType::f32, {L, V}, false));
    K31_TRY(expect(in, "coordinates", plan::DType::i32, {8}, false));
    K31_TRY(expect(in, "hidden", m.activations(), {T, H}, handed_in));
    K31_TRY(expect(in, "bank", m.activations(), {kAny, T, H}, false)); // families without a residual bank have none
    K31_TRY(expect(out, "logits", plan::DType::f32, {L, V}, last && L > 0));
    K31_TRY(expect(out, "sampled", plan::DType::i32, {L}, last && L > 0));
    K31_TRY(expect(out, "hidden", m.activations(), {T, H}, handed_out));
    return expect(out, "bank", m.activations(), {kAny, T, H}, false);
  }

  Result<void> capacities() const {
    if (!in_range(entry.kind(), plan::EntryKind::MAX))
      return refuse(cat(where, " is of kind ", int(entry.kind()), ", the last kind is ", int(plan::EntryKind::MAX)));
    if (entry.rows() == 0 || entry.segments() == 0 || entry.segments() > entry.rows() || entry.logit_rows() > entry.rows())
      return refuse(cat(where, " has ", entry.rows(), " rows, ", entry.segments(), " segments and ", entry.logit_rows(),
                        " logit rows, expected rows and segments above 0 and no more of the others than rows"));
    if (entry.stage() >= plan.mesh()->pp())
      return refuse(cat(where, " belongs to stage ", entry.stage(), " of ", plan.mesh()->pp()));
    if (entry.streams() == 0 || entry.streams() > 1024)
      return refuse(cat(where, " has ", entry.streams(), " streams, expected 1 to 1024"));
    if (entry.events() > entry.commands()->size())
      return refuse(cat(where, " has ", entry.events(), " events, but ", entry.commands()->size(), " commands"));
    return {};
  }

  Result<void> commands() const {
    std::vector<bool> recorded(entry.events());
    for (uint32_t i = 0; i < entry.commands()->size(); ++i)
      K31_TRY(command(plan, entry, entry.commands_type()->GetEnum<plan::Command>(i), entry.commands()->Get(i), recorded));
    return {};
  }
};

// All stages run the same entries, by their number within the stage; ranks that disagree would wait for each other for ever.
Result<void> stages(const plan::Plan &plan) {
  std::vector<std::vector<const plan::Entry *>> of(plan.mesh()->pp());
  for (const plan::Entry *entry : *plan.entries())
    of[entry->stage()].push_back(entry);
  const auto same = [](const plan::Entry *a, const plan::Entry *b) {
    return a->kind() == b->kind() && a->rows() == b->rows() && a->segments() == b->segments() &&
           a->logit_rows() == b->logit_rows();
  };
  for (size_t stage = 0; of.size() > 1 && stage < of.size(); ++stage) {
    if (of[stage].empty())
      return refuse(cat("no entry belongs to stage ", stage, " of ", of.size(), ", expected one or more of every stage"));
    if (!std::equal(of[0].begin(), of[0].end(), of[stage].begin(), of[stage].end(), same))
      return refuse(cat("the entries of stage ", stage, " are not those of stage 0, expected the same kinds, rows, segments and ",
                        "logit rows in the same order"));
  }
  return {};
}

} // namespace

Result<void> entries(const plan::Plan &plan) {
  if (plan.entries()->size() > kMaxEntries)
    return refuse(cat("the plan has ", plan.entries()->size(), " entries, at most ", kMaxEntries, " are possible"));
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const plan::Entry &entry = *plan.entries()->Get(i);
    for (uint32_t j = 0; j < i; ++j)
      if (plan.entries()->Get(j)->name()->string_view() == entry.name()->string_view())
        return refuse("two entries are named " + quote(entry.name()->str()));
    const EntryChecker checker{plan, entry, "entry " + quote(entry.name()->str())};
    K31_TRY(checker.capacities());
    K31_TRY(notes(plan, entry.notes(), checker.where));
    K31_TRY(checker.bindings(*entry.inputs(), true));
    K31_TRY(checker.bindings(*entry.outputs(), false));
    K31_TRY(checker.contract());
    K31_TRY(checker.commands());
  }
  return stages(plan);
}

} // namespace k31::check
