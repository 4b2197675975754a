#include "tools/k31_run/ids.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include <charconv>

namespace k31::run {

Result<std::vector<int32_t>> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  for (size_t begin = 0, end = 0; end < text.size() || ids.empty(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const char *last = text.data() + end;
    const auto [stop, error] = std::from_chars(text.data() + begin, last, ids.emplace_back());
    if (error != std::errc() || stop != last)
      return fail(Code::invalid_input,
                  cat(quote(text.substr(begin, end - begin), 40), " is no token id; expected integers of 32 bits "
                                                                  "separated by commas, such as 1114,259,1983"));
  }
  return ids;
}

Result<std::vector<std::vector<int32_t>>> read_ids(const std::string &path) {
  K31_ASSIGN(const std::string text, read_text(path));
  std::vector<std::vector<int32_t>> all;
  std::string_view rest = text;
  if (rest.ends_with('\n'))
    rest.remove_suffix(1);
  for (bool more = true; more;) {
    const size_t end = rest.find('\n');
    more = end != rest.npos;
    auto ids = parse_ids(rest.substr(0, end));
    if (!ids)
      return context(cat(quote(path, 4096), ": line ", all.size() + 1), std::move(ids.error()));
    all.push_back(std::move(*ids));
    rest.remove_prefix(more ? end + 1 : 0);
  }
  return all;
}

CLI::Option *add_tokens(CLI::App &app, std::vector<int32_t> &ids, const std::string &description) {
  return app
      .add_option_function<std::string>(
          "--tokens",
          [&ids](const std::string &text) {
            auto parsed = parse_ids(text);
            if (!parsed)
              throw CLI::ValidationError("--tokens", parsed.error().message);
            ids = std::move(*parsed);
          },
          description)
      ->type_name("ID,ID,...");
}

} // namespace k31::run
