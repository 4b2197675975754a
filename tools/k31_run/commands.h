// The commands of k31-run: each adds its options to the command line and returns what runs when it was chosen.
#pragma once
#include "runtime/base/result.h"
#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>

namespace k31::run {

struct Command {
  CLI::App *app;
  std::function<Result<void>()> run;
};

// What is wrong with a token id on the command line, or nothing.
inline std::string check_id(const std::string &text) {
  int32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size()
             ? ""
             : "'" + text + "' is no token id; expected integers separated by commas";
}

Command add_bench(CLI::App &parent);
Command add_generate(CLI::App &parent);
Command add_logits(CLI::App &parent);
Command add_perplexity(CLI::App &parent);
Command add_verify(CLI::App &parent);

} // namespace k31::run
