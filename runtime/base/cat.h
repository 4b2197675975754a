// Messages from parts: cat("found ", 3, " bytes"). For error paths only.
#pragma once
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace k31 {

template <class... Parts> std::string cat(const Parts &...parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return out.str();
}

// Text of untrusted origin for a one-line message: control bytes become '?', and what is too long is cut.
inline std::string quote(std::string_view text, size_t limit = 120) {
  std::string out = "'";
  for (char c : text.substr(0, limit))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (text.size() > limit ? "...'" : "'");
}

} // namespace k31
