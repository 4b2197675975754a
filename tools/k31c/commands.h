// The commands of k31c; one file each. A command returns an exit code: 0 done, 1 refused or failed (one line on stderr), 2 wrong
// usage.
#pragma once
#include "compiler/Plan/MemoryTable.h"
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

namespace k31::tool {

struct Command {
  CLI::App *app;
  std::function<int()> run;
};

Command addCompile(CLI::App &app);
Command addDiff(CLI::App &app);
Command addExplain(CLI::App &app);
Command addInspect(CLI::App &app);

// "k31c: error: ..." on stderr.
int fail(int code, const std::string &message);

// Bytes of --memory-limit: "h100", "h200", or a number with an optional K, M, G or T (powers of 1024). Empty when it is neither.
std::optional<uint64_t> parseMemoryLimit(const std::string &text);

// Empty when the table fits; else why not, with the arithmetic and the nearest options that would fit.
// `cacheFits`: whether a smaller cache is among them.
std::string overLimit(const MemoryTable &table, uint64_t limit, bool &cacheFits);

} // namespace k31::tool
