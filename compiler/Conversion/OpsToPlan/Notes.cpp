// One plan.note for all equal notes of level 2.
#include "dialects/Support/Notes.h"
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

FailureOr<FlatSymbolRefAttr> Notes::of(Operation *op, Attribute attribute) {
  FlatSymbolRefAttr &symbol = known[attribute];
  if (symbol)
    return symbol;
  std::optional<Note> note = readNote(attribute);
  if (!note)
    return op->emitOpError("has ") << kNotes << " with " << attribute << ", expected {about, choice, reason} as text";
  SmallVector<StringRef> choices;
  SmallVector<int64_t> times;
  for (const Candidate &candidate : note->candidates) {
    choices.push_back(candidate.choice);
    times.push_back(static_cast<int64_t>(candidate.nanoseconds));
  }
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(last);
  auto created =
      planir::NoteOp::create(builder, builder.getUnknownLoc(), "note." + std::to_string(known.size() - 1), note->about,
                             note->choice, note->reason, builder.getStrArrayAttr(choices), builder.getDenseI64ArrayAttr(times));
  last = created;
  return symbol = FlatSymbolRefAttr::get(created);
}

LogicalResult Notes::give(Operation *from, Operation *to) {
  auto notes = from->getAttrOfType<ArrayAttr>(kNotes);
  if (!notes)
    return success();
  SmallVector<Attribute> symbols;
  for (Attribute attribute : notes) {
    FailureOr<FlatSymbolRefAttr> symbol = of(from, attribute);
    if (failed(symbol))
      return failure();
    symbols.push_back(*symbol);
  }
  to->setAttr(planir::kNotes, ArrayAttr::get(to->getContext(), symbols));
  return success();
}
