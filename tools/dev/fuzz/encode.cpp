#include "runtime/text/tokenizer.h"
#include "runtime/text/utf8.h"
#include "tools/dev/fuzz/targets.h"

namespace k31::fuzz {
namespace {

std::string base64(std::string_view bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      out += i + j <= bytes.size() ? digits[word >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

// Single bytes, then merges of letters, of spaces and of a multi-byte code point.
const text::Tokenizer &tokenizer() {
  static const text::Tokenizer made = [] {
    std::string file;
    int rank = 0;
    const auto add = [&](const std::string &token) { file += base64(token) + " " + std::to_string(rank++) + "\n"; };
    for (int byte = 0; byte < 256; ++byte)
      add(std::string(1, static_cast<char>(byte)));
    for (const char *token : {"aa",  "aaa",      "aaaa",         "th", "the", " t",  " the", "  ",   "    ", "\n\n",    "12",
                              "123", "\xe4\xb8", "\xe4\xb8\xad", "ab", "ba",  "aba", "bab",  "abab", "'s",   "\xc3\xa9"})
      add(token);
    auto parsed = text::Tokenizer::parse(file);
    require(parsed.has_value(), "the built-in vocabulary is valid");
    return std::move(*parsed);
  }();
  return made;
}

} // namespace

void encode(Bytes bytes) {
  const std::string_view text = fuzz::text(bytes);
  const auto ids = tokenizer().encode(text);
  if (!ids)
    return require_one_line(ids.error().message);
  std::string raw, streamed, expected; // invalid UTF-8 is read as U+FFFD
  text::append_utf8(text, true, expected);
  text::StreamDecoder decoder(tokenizer());
  for (const int32_t id : *ids) {
    require(id >= 0 && id < tokenizer().base(), "text never becomes a special id");
    raw += tokenizer().bytes(id);
    streamed += decoder.push(id);
  }
  streamed += decoder.finish();
  require(raw == expected, "ids spell the text");
  const auto decoded = tokenizer().decode(*ids);
  require(decoded && *decoded == expected, "ids decode to the text");
  require(streamed == expected, "a stream decodes as the whole does");
}

} // namespace k31::fuzz
