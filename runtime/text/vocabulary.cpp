#include "runtime/text/vocabulary.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <array>
#include <charconv>

namespace k31::text {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> digits = [] {
  std::array<int8_t, 256> table{};
  table.fill(-1);
  for (size_t i = 0; i < alphabet.size(); ++i)
    table[uint8_t(alphabet[i])] = int8_t(i);
  return table;
}();

// Strict base64 with padding; returns the number of bytes written, or -1. `out` has room for text.size() / 4 * 3 bytes.
int64_t decode_base64(std::string_view text, char *out) {
  if (text.empty() || text.size() % 4)
    return -1;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  char *const begin = out;
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t used = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t bits = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int8_t digit = k < used ? digits[uint8_t(text[i + k])] : int8_t(0);
      if (digit < 0)
        return -1;
      bits = bits << 6 | uint32_t(digit);
    }
    if (used < 4 && bits & ((1u << 8 * (4 - used)) - 1))
      return -1; // bits after the last byte: two spellings of one token
    for (size_t k = 0; k + 1 < used; ++k)
      *out++ = char(bits >> (16 - 8 * k));
  }
  return out - begin;
}

tl::unexpected<Error> refuse(size_t line, const std::string &what) {
  return fail(Code::invalid_input, cat("line ", line, ": ", what));
}

} // namespace

Result<Vocabulary> Vocabulary::parse(std::string_view file) {
  Vocabulary result;
  const size_t lines = size_t(std::count(file.begin(), file.end(), '\n')) + (!file.empty() && file.back() != '\n');
  if (lines < 256 || lines > (1u << 24))
    return fail(Code::invalid_input, std::to_string(lines) + " lines; expected one line for each of 256 to 16777216 tokens");
  result.storage = std::make_unique<char[]>(file.size());
  result.tokens.resize(lines);
  result.ids.reserve(lines);
  char *out = result.storage.get();
  for (size_t line = 1; !file.empty(); ++line) {
    const size_t end = std::min(file.find('\n'), file.size());
    const std::string_view text = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    const size_t space = text.find(' ');
    if (space == std::string_view::npos)
      return refuse(line, "found " + quote(text, 40) + "; expected \"base64(token) rank\"");
    const int64_t bytes = decode_base64(text.substr(0, space), out);
    if (bytes <= 0)
      return refuse(line, "the token " + quote(text.substr(0, space)) + " is not base64");
    uint32_t rank = 0;
    const std::string_view number = text.substr(space + 1);
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
    if (error != std::errc() || stop != number.data() + number.size())
      return refuse(line, "the rank " + quote(number) + " is not a number");
    if (rank >= lines)
      return refuse(line, "rank " + std::to_string(rank) + " leaves a gap: the file has " + std::to_string(lines) + " tokens");
    if (!result.tokens[rank].empty())
      return refuse(line, "rank " + std::to_string(rank) + " was given before");
    const std::string_view token(out, size_t(bytes));
    out += bytes;
    if (const auto [it, fresh] = result.ids.emplace(token, int32_t(rank)); !fresh)
      return refuse(line, "the same token as rank " + std::to_string(it->second));
    result.tokens[rank] = token;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char single = char(byte);
    if (result.find({&single, 1}) < 0)
      return fail(Code::invalid_input,
                  "no token for the single byte " + std::to_string(byte) + "; text with it could not be encoded");
  }
  return result;
}

} // namespace k31::text
