// Errors as values. Every function of the runtime that can fail returns Result<T>.
#pragma once
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace k31 {

enum class Code {
  invalid_input, // a file, a plan or a request is not what it must be
  unsupported,   // valid, but this build or this machine cannot do it
  not_found,     // a file, an entry or a tensor that is not there
  io,            // the operating system refused
  out_of_memory, // device or host memory, blocks or slots
  internal,      // a broken promise of our own
};

// Text for a message, which has one line whatever names and values of the input are in it: control characters, and what else
// Unicode ends a line or turns its direction with, become escapes such as \n and \x1b. Applied twice it changes nothing.
std::string one_line(std::string text);

// One line for the user: what was found, what was expected, what to do.
struct Error {
  Error(Code code, std::string message) : code(code), message(one_line(std::move(message))) {}
  Code code;
  std::string message;
};

template <class T = void> using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Code code, std::string message) { return tl::unexpected(Error{code, std::move(message)}); }

// Adds where it happened in front of the message: context("model.safetensors", error).
inline tl::unexpected<Error> context(const std::string &where, Error error) {
  return fail(error.code, where + ": " + error.message);
}

} // namespace k31

// Return early with the error of a Result; K31_ASSIGN also names the value.
#define K31_CONCAT_(a, b) a##b
#define K31_CONCAT(a, b) K31_CONCAT_(a, b)
#define K31_TRY(expression)                                                                                                      \
  do {                                                                                                                           \
    if (auto k31_result = (expression); !k31_result)                                                                             \
      return tl::unexpected(std::move(k31_result.error()));                                                                      \
  } while (0)
#define K31_ASSIGN(declaration, expression)                                                                                      \
  auto K31_CONCAT(k31_value_, __LINE__) = (expression);                                                                          \
  if (!K31_CONCAT(k31_value_, __LINE__))                                                                                         \
    return tl::unexpected(std::move(K31_CONCAT(k31_value_, __LINE__).error()));                                                  \
  declaration = std::move(*K31_CONCAT(k31_value_, __LINE__))
