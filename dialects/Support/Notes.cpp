#include "dialects/Support/Notes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace k31 {

DictionaryAttr noteAttr(MLIRContext *context, const Note &note) {
  Builder b(context);
  NamedAttrList fields;
  fields.set("about", b.getStringAttr(note.about));
  fields.set("choice", b.getStringAttr(note.choice));
  fields.set("reason", b.getStringAttr(note.reason));
  if (!note.candidates.empty()) {
    SmallVector<Attribute> choices;
    SmallVector<int64_t> times;
    for (const Candidate &candidate : note.candidates) {
      choices.push_back(b.getStringAttr(candidate.choice));
      times.push_back(static_cast<int64_t>(candidate.nanoseconds));
    }
    fields.set("candidates", b.getArrayAttr(choices));
    fields.set("nanoseconds", b.getDenseI64ArrayAttr(times));
  }
  return fields.getDictionary(context);
}

std::optional<Note> readNote(Attribute attribute) {
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  auto text = [&](StringRef name) { return fields ? fields.getAs<StringAttr>(name) : StringAttr(); };
  StringAttr about = text("about"), choice = text("choice"), reason = text("reason");
  if (!about || !choice || !reason)
    return std::nullopt;
  Note note{about.str(), choice.str(), reason.str(), {}};
  auto choices = fields.getAs<ArrayAttr>("candidates");
  auto times = fields.getAs<DenseI64ArrayAttr>("nanoseconds");
  if (!choices && !times)
    return note;
  if (!choices || !times || choices.size() != static_cast<size_t>(times.size()))
    return std::nullopt;
  for (auto [name, time] : llvm::zip(choices, times.asArrayRef())) {
    auto text = dyn_cast<StringAttr>(name);
    if (!text || time < 0)
      return std::nullopt;
    note.candidates.push_back({text.str(), static_cast<uint64_t>(time)});
  }
  return note;
}

static SmallVector<Attribute> notesOf(Operation *op) {
  auto notes = op->getAttrOfType<ArrayAttr>(kNotes);
  return notes ? SmallVector<Attribute>(notes.getValue()) : SmallVector<Attribute>();
}

static void setNotes(Operation *op, ArrayRef<Attribute> notes) {
  if (!notes.empty())
    op->setAttr(kNotes, ArrayAttr::get(op->getContext(), notes));
}

void note(Operation *op, const Note &note) {
  SmallVector<Attribute> notes = notesOf(op);
  DictionaryAttr added = noteAttr(op->getContext(), note);
  if (!llvm::is_contained(notes, added))
    notes.push_back(added);
  setNotes(op, notes);
}

void inheritNotes(Operation *op, ArrayRef<Operation *> from) {
  SmallVector<Attribute> all;
  auto add = [&](Operation *source) {
    for (Attribute note : notesOf(source))
      if (!llvm::is_contained(all, note))
        all.push_back(note);
  };
  for (Operation *source : from)
    add(source);
  add(op);
  setNotes(op, all);
}

} // namespace k31
