// Messages from parts: cat("found ", 3, " bytes"). For error paths only.
#pragma once
#include "runtime/base/result.h"
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

// Text of untrusted origin for a message: what is too long is cut.
inline std::string quote(std::string_view text, size_t limit = 120) {
  return one_line(cat("'", text.substr(0, limit), text.size() > limit ? "...'" : "'"));
}

} // namespace k31
