// Meaning of a plan's numbers: every index, range and enum, checked once at Load. The FlatBuffer verifier has run before.
#pragma once
#include "runtime/base/cat.h"
#include "runtime/base/result.h"
#include "runtime/plan/dtype.h"
#include "runtime/schema/plan_generated.h"
#include <vector>

namespace k31::check {

Result<void> model(const plan::Plan &plan);                // mesh and model
Result<void> memory(const plan::Plan &plan);               // arenas and state
Result<void> weights(const plan::Plan &plan);              // files, stacks and layouts
Result<void> code(const plan::Plan &plan);                 // images, kernels and notes
Result<void> entries(const plan::Plan &plan);              // bindings and commands
Result<void> text(const plan::Plan &plan, uint64_t bytes); // all strings, of a file of so many bytes; after the others

// A refusal of the plan itself; only a compiler can mend it.
inline tl::unexpected<Error> refuse(const std::string &text) {
  return fail(Code::invalid_input, text + "; the plan is wrong, compile it again");
}

// Name of an enum's value for a message; "?" for one that the schema does not have.
template <class Enum> const char *name_of(Enum value, const char *(*names)(Enum)) { return *names(value) ? names(value) : "?"; }
template <class Enum> bool in_range(Enum value, Enum last) { return static_cast<uint8_t>(value) <= static_cast<uint8_t>(last); }

// [offset, offset + bytes) lies inside [0, size), without overflow.
inline bool fits(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

// The verifier checks where a vector starts, not where its 8-byte elements do.
inline bool aligned(const flatbuffers::Vector<uint64_t> &vector) { return reinterpret_cast<uintptr_t>(vector.Data()) % 8 == 0; }

// Bytes of a tensor; false when they do not fit 64 bits.
template <class Shape> bool tensor_bytes(const Shape &shape, uint64_t element, uint64_t *bytes) {
  *bytes = element;
  for (uint64_t extent : shape)
    if (__builtin_mul_overflow(*bytes, extent, bytes))
      return false;
  return true;
}

// The notes of a command or entry; more than these would make a small file slow to check.
constexpr uint32_t kMaxNotes = 256;
Result<void> notes(const plan::Plan &plan, const flatbuffers::Vector<uint32_t> *list, const std::string &where);

// Weights that write the same bytes; after each stack has been checked by itself.
Result<void> overlaps(const plan::Plan &plan);

// One launch, collective, copy, record or wait; `recorded` holds the events that have been recorded before it.
Result<void> command(const plan::Plan &plan, const plan::Entry &entry, plan::Command type, const void *command,
                     std::vector<bool> &recorded);

} // namespace k31::check
