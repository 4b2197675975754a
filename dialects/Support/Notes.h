// Why the compiler chose what it chose. A pass notes a choice on the op, or on the entry's function, that it chose for:
//
//   note(op, {"kernel", "4 tasks", "a core takes 9 us", {{"1 task", 9000}, {"4 tasks", 2500}}});
//
// Notes ride along as attribute k31.notes. convert-ops-to-plan gives them to the launches, collectives and entries that come of
// the op (plan.note, Note in the schema), and `k31c explain` prints them. They change no code; equal notes are stored once.
#pragma once
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include <optional>
#include <string>

namespace k31 {

inline constexpr llvm::StringLiteral kNotes = "k31.notes";

// One of the choices that were compared, with its estimated time.
struct Candidate {
  std::string choice;
  uint64_t nanoseconds = 0;
};

struct Note {
  std::string about;  // what was chosen, one word: "kernel", "fusion", "layout"
  std::string choice; // one of the candidates' when there are any
  std::string reason; // for people, with the numbers that decided
  llvm::SmallVector<Candidate, 0> candidates;
};

// Appends; a note that the op has already is left as it is.
void note(mlir::Operation *op, const Note &note);

// The notes of ops that `op` stands for from now on, in front of its own.
void inheritNotes(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> from);

// As an attribute, {about, choice, reason, candidates = [...], nanoseconds = array<i64: ...>}, and back; an attribute of another
// form is empty.
mlir::DictionaryAttr noteAttr(mlir::MLIRContext *context, const Note &note);
std::optional<Note> readNote(mlir::Attribute attribute);

// Nanoseconds from a number that may be any; for estimates.
inline uint64_t nanoseconds(double seconds) { return seconds > 0 ? static_cast<uint64_t>(seconds * 1e9 + 0.5) : 0; }

} // namespace k31
