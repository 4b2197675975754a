// What both command lines do alike: help that fits a screen, options whose help says what they take, one line for wrong usage.
#pragma once
#include "runtime/base/cat.h"
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace k31::usage {

// One of `words`; the help shows them as "auto|on|off".
inline CLI::Option *choice(CLI::Option *option, const std::vector<std::string> &words) {
  std::string names;
  for (const std::string &word : words)
    names += (names.empty() ? "" : "|") + word;
  return option->check(CLI::IsMember(words).description(""))->type_name(names);
}

// An integer from least to most, which the message of a wrong one names; the help shows N.
template <class Int> CLI::Option *number(CLI::Option *option, Int least, Int most) {
  return option->check(CLI::Range(least, most).description(""))->type_name("N");
}

// Descriptions in lines of at most 90 characters.
class Help : public CLI::Formatter {
public:
  std::string make_option_desc(const CLI::Option *option) const override {
    std::string out;
    size_t line = 0;
    for (const std::string &word : CLI::detail::split(option->get_description(), ' ')) {
      const bool fits = line + 1 + word.size() <= 90;
      out += line == 0 ? "" : fits ? " " : "\n";
      line = line && fits ? line + 1 + word.size() : word.size();
      out += word;
    }
    return out;
  }
};

// "NAME: error: ..., see NAME COMMAND --help". A word that is no command is named.
inline std::string message(const CLI::App *app, const CLI::Error &error) {
  std::string what = error.what(), help = app->get_name();
  for (const CLI::App *command : app->get_subcommands())
    help += " " + command->get_name();
  const std::vector<std::string> others = app->remaining();
  if (app->get_subcommands().empty() && !others.empty())
    what = (others[0].starts_with("-") ? "no option " : "no command ") + quote(others[0]);
  return cat(app->get_name(), ": error: ", one_line(what), "; ", help,
             app->get_subcommands().empty() ? " --help lists commands and options\n" : " --help lists its options\n");
}

inline void add_to(CLI::App &app) {
  auto help = std::make_shared<Help>();
  help->column_width(28);
  app.formatter(help);
  app.require_subcommand(1);
  app.failure_message(message);
}

} // namespace k31::usage
