// Names and texts, which tools print: nothing in them ends a line or speaks to a terminal.
#include "runtime/plan/check.h"
#include <unordered_set>

namespace k31::check {
namespace {

struct Texts {
  uint64_t left;                                        // bytes that strings can have; those of a compiler do not overlap
  std::unordered_set<const flatbuffers::String *> seen; // commands share their labels

  Result<void> take(const char *what, const flatbuffers::String *text) {
    if (!text || !seen.insert(text).second)
      return {};
    if (text->size() > left)
      return refuse("the plan's strings have more bytes than its file");
    left -= text->size();
    if (std::string plain = text->str(); one_line(plain) != plain)
      return refuse(cat(what, " ", quote(plain), " has control characters, expected text of one line"));
    return {};
  }
  template <class... More> Result<void> take(const char *what, const flatbuffers::String *text, const More *...more) {
    K31_TRY(take(what, text));
    return take(what, more...);
  }

  Result<void> command(plan::Command type, const void *command) {
    switch (type) {
    case plan::Command::Launch:
      return take("the label", static_cast<const plan::Launch *>(command)->label());
    case plan::Command::Collective: {
      const auto &collective = *static_cast<const plan::Collective *>(command);
      return take("the label", collective.label(), collective.launch() ? collective.launch()->label() : nullptr);
    }
    case plan::Command::Copy:
      return take("the label", static_cast<const plan::Copy *>(command)->label());
    default:
      return {};
    }
  }

  Result<void> entry(const plan::Entry &entry) {
    K31_TRY(take("the entry", entry.name()));
    for (const auto *list : {entry.inputs(), entry.outputs()})
      for (const plan::Binding *binding : *list)
        K31_TRY(take("the input or output", binding->name()));
    for (uint32_t i = 0; i < entry.commands()->size(); ++i)
      K31_TRY(command(entry.commands_type()->GetEnum<plan::Command>(i), entry.commands()->Get(i)));
    return {};
  }

  Result<void> code(const plan::Plan &plan) {
    for (const plan::Image *image : *plan.images()) {
      K31_TRY(take("the image's target", image->target()));
      for (const flatbuffers::String *feature : *image->features())
        K31_TRY(take("the feature", feature));
    }
    for (const plan::Kernel *kernel : *plan.kernels())
      K31_TRY(take("the kernel's text", kernel->name(), kernel->symbol(), kernel->config()));
    for (uint32_t i = 0; plan.notes() && i < plan.notes()->size(); ++i) {
      const plan::Note &note = *plan.notes()->Get(i);
      K31_TRY(take("the note", note.about(), note.choice(), note.reason()));
      for (uint32_t c = 0; note.candidates() && c < note.candidates()->size(); ++c)
        K31_TRY(take("the candidate", note.candidates()->Get(c)->choice()));
    }
    return {};
  }
};

} // namespace

Result<void> text(const plan::Plan &plan, uint64_t bytes) {
  Texts texts{bytes, {}};
  const plan::Key &key = *plan.key();
  K31_TRY(texts.take("the key's text", key.compiler(), key.target(), key.checkpoint(), key.digest()));
  for (const plan::Option *option : *key.options())
    K31_TRY(texts.take("the option", option->name(), option->value()));
  K31_TRY(texts.take("the family", plan.model()->family()));
  for (const plan::Arena *arena : *plan.arenas())
    K31_TRY(texts.take("the arena", arena->name()));
  for (const plan::CheckpointFile *file : *plan.files())
    K31_TRY(texts.take("the file", file->name()));
  for (const plan::WeightStack *stack : *plan.weights())
    K31_TRY(texts.take("the weight's text", stack->pattern(), stack->dtype()));
  K31_TRY(texts.code(plan));
  for (const plan::Entry *entry : *plan.entries())
    K31_TRY(texts.entry(*entry));
  return {};
}

} // namespace k31::check
