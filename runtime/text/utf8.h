// UTF-8 with replacement: every maximal invalid part becomes one U+FFFD, as the Unicode standard recommends.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace k31::text {

// Appends the complete code points of `bytes` to `out` and returns how many bytes were used. A cut code point at the end is left
// for later unless `last` is set; then it is replaced too.
size_t append_utf8(std::string_view bytes, bool last, std::string &out);

} // namespace k31::text
