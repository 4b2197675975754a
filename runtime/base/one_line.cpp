#include "runtime/base/result.h"
#include <algorithm>
#include <array>
#include <cstdint>

namespace k31 {
namespace {

// Bytes of the character at the start of `text` that must not be shown as it is; 0 when it may be.
size_t hidden(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto within = [](unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; };
  if (byte(0) < 0x20 || byte(0) == 0x7f)
    return 1;
  if (byte(0) == 0xc2 && within(byte(1), 0x80, 0x9f)) // U+0080 to U+009F: controls, among them the line end U+0085
    return 2;
  // U+2028 to U+202E: ends of lines and paragraphs, directions; U+2066 to U+2069: directions.
  return byte(0) == 0xe2 && ((byte(1) == 0x80 && within(byte(2), 0xa8, 0xae)) || (byte(1) == 0x81 && within(byte(2), 0xa6, 0xa9)))
             ? 3
             : 0;
}

} // namespace

std::string one_line(std::string text) {
  std::string out;
  size_t copied = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = hidden(std::string_view(text).substr(at));
    if (bytes == 0) {
      ++at;
      continue;
    }
    out.append(text, copied, at - copied);
    for (const size_t end = at + bytes; at < end; ++at) {
      static constexpr std::string_view kNamed = "\n\t\r", kLetters = "ntr", kDigits = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(text[at]);
      if (const size_t named = kNamed.find(text[at]); named != kNamed.npos)
        out += {'\\', kLetters[named]};
      else
        out += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
    }
    copied = at;
  }
  if (copied == 0)
    return text;
  return out.append(text, copied);
}

} // namespace k31
