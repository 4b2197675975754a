#include "runtime/text/split.h"
#include <string>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

namespace k31::text {
namespace {

// The eight alternatives of the released pattern. ICU nests the union inside the intersection, and White_Space is named because
// \s of regular expression engines differs in the control characters.
constexpr const char *pattern_text = R"([\p{script=Han}]+)"
                                     R"(|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{script=Han}]]*)"
                                     R"([[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{script=Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
                                     R"(|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{script=Han}]]+)"
                                     R"([[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{script=Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
                                     R"(|\p{N}{1,3})"
                                     R"(| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*)"
                                     R"(|\p{White_Space}*[\r\n]+)"
                                     R"(|\p{White_Space}+(?!\P{White_Space}))"
                                     R"(|\p{White_Space}+)";

// Limits of the released tokenizer, in code points.
constexpr int32_t max_text = 400000;
constexpr int32_t max_run = 25000;

// What the released tokenizer calls a space in its run limit (Python's str.isspace).
bool is_space(UChar32 c) {
  switch (u_charDirection(c)) {
  case U_WHITE_SPACE_NEUTRAL:
  case U_BLOCK_SEPARATOR:
  case U_SEGMENT_SEPARATOR:
    return true;
  default:
    return u_charType(c) == U_SPACE_SEPARATOR;
  }
}

tl::unexpected<Error> icu_error(const char *what, UErrorCode status) {
  return fail(Code::internal, std::string(what) + ": ICU reports " + u_errorName(status));
}

// End of the part of `text` that starts at `begin` (UTF-16 units) and is given to the pattern as a whole: the text is cut every
// max_text code points, and inside such a part wherever a run of only spaces or only others would pass max_run.
struct Cutter {
  int32_t until_cut = max_text;

  int32_t next(const icu::UnicodeString &text, int32_t begin) {
    int32_t run = 0;
    bool space = is_space(text.char32At(begin));
    int32_t at = begin;
    for (; at < text.length(); at = text.moveIndex32(at, 1)) {
      if (until_cut == 0) {
        until_cut = max_text;
        return at;
      }
      const bool now = is_space(text.char32At(at));
      run = now == space ? run + 1 : 1;
      space = now;
      if (run > max_run)
        return at;
      --until_cut;
    }
    return at;
  }
};

} // namespace

struct Splitter::Impl {
  std::unique_ptr<icu::RegexPattern> pattern;
};

Splitter::Splitter() : impl(std::make_unique<Impl>()) {}
Splitter::Splitter(Splitter &&) noexcept = default;
Splitter &Splitter::operator=(Splitter &&) noexcept = default;
Splitter::~Splitter() = default;

Result<Splitter> Splitter::make() {
  Splitter result;
  UErrorCode status = U_ZERO_ERROR;
  UParseError where;
  result.impl->pattern.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(pattern_text), where, status));
  if (U_FAILURE(status))
    return icu_error("split pattern", status);
  return result;
}

Result<void> Splitter::split(std::string_view text, const std::function<void(std::string_view piece)> &piece) const {
  if (text.size() > size_t(1) << 30)
    return fail(Code::invalid_input,
                "the text has " + std::to_string(text.size()) + " bytes; at most 2^30 can be encoded at once");
  const icu::UnicodeString whole = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), int32_t(text.size())));
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::RegexMatcher> matcher(impl->pattern->matcher(status));
  if (U_FAILURE(status))
    return icu_error("split", status);
  std::string bytes;
  Cutter cutter;
  for (int32_t begin = 0; begin < whole.length();) {
    const int32_t end = cutter.next(whole, begin);
    // A part is matched as a text of its own: look-ahead must not see past a cut.
    const icu::UnicodeString part = whole.tempSubStringBetween(begin, end);
    matcher->reset(part);
    while (matcher->find(status)) {
      const int32_t from = matcher->start(status), to = matcher->end(status);
      bytes.clear();
      part.tempSubStringBetween(from, to).toUTF8String(bytes);
      piece(bytes);
    }
    if (U_FAILURE(status))
      return icu_error("split", status);
    begin = end;
  }
  return {};
}

} // namespace k31::text
