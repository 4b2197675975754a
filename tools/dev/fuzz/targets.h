// One function for each reader of untrusted bytes. A fuzzer calls it with bytes that it makes up, the test suite with the corpora
// of test/data/fuzz. Whatever the bytes are, the reader must answer with a value or with one line; anything else ends the
// process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace k31::fuzz {

using Bytes = std::span<const std::byte>;

void plan(Bytes bytes);        // FlatBuffer of a plan, without trailer: the checks of Load
void safetensors(Bytes bytes); // a safetensors file
void index(Bytes bytes);       // model.safetensors.index.json
void vocabulary(Bytes bytes);  // tiktoken.model
void encode(Bytes bytes);      // text, to ids and back
void config(Bytes bytes);      // config.json, in a library of its own: it needs MLIR

struct Target {
  std::string_view name;
  void (*run)(Bytes bytes);
};
inline constexpr Target targets[] = {
    {"plan", plan}, {"safetensors", safetensors}, {"index", index}, {"vocabulary", vocabulary}, {"encode", encode}};

// A promise that holds for all bytes. Not an assert: release builds replay the corpora too.
inline void require(bool holds, const char *promise) {
  if (holds)
    return;
  fprintf(stderr, "broken promise: %s\n", promise);
  abort();
}

inline std::string_view text(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

// What an error promises its readers.
inline void require_one_line(const std::string &message) {
  require(!message.empty() && message.find('\n') == message.npos, "an error has a message of one line");
}

} // namespace k31::fuzz
