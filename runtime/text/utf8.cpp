#include "runtime/text/utf8.h"
#include <cstdint>

namespace k31::text {
namespace {

struct Lead {
  int length;        // of the whole code point; 0: not a lead byte
  uint8_t low, high; // range of the second byte, which excludes overlong forms, surrogates and values past U+10FFFF
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80)
    return {1, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF)
    return {2, 0x80, 0xBF};
  if (byte >= 0xE0 && byte <= 0xEF)
    return {3, uint8_t(byte == 0xE0 ? 0xA0 : 0x80), uint8_t(byte == 0xED ? 0x9F : 0xBF)};
  if (byte >= 0xF0 && byte <= 0xF4)
    return {4, uint8_t(byte == 0xF0 ? 0x90 : 0x80), uint8_t(byte == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

} // namespace

size_t append_utf8(std::string_view bytes, bool last, std::string &out) {
  size_t i = 0;
  while (i < bytes.size()) {
    const Lead lead = lead_of(uint8_t(bytes[i]));
    size_t good = lead.length ? 1 : 0; // valid bytes of this code point
    while (good && good < size_t(lead.length) && i + good < bytes.size()) {
      const uint8_t next = uint8_t(bytes[i + good]);
      if (next < (good == 1 ? lead.low : 0x80) || next > (good == 1 ? lead.high : 0xBF))
        break;
      ++good;
    }
    if (good && good == size_t(lead.length)) {
      out.append(bytes.substr(i, good));
    } else {
      if (!last && good && i + good == bytes.size())
        break; // cut, not wrong
      out.append("\xEF\xBF\xBD");
    }
    i += good ? good : 1;
  }
  return i;
}

} // namespace k31::text
