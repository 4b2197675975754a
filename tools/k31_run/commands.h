// The commands of k31-run: each adds its options to the command line and returns what runs when it was chosen.
#pragma once
#include "runtime/base/result.h"
#include <CLI/CLI.hpp>
#include <functional>

namespace k31::run {

struct Command {
  CLI::App *app;
  std::function<Result<void>()> run;
};

Command add_bench(CLI::App &parent);
Command add_generate(CLI::App &parent);
Command add_logits(CLI::App &parent);
Command add_perplexity(CLI::App &parent);
Command add_verify(CLI::App &parent);

} // namespace k31::run
