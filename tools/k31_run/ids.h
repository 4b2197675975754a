// Token ids as a user writes them: integers separated by commas, nothing else between them.
#pragma once
#include "runtime/base/result.h"
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

namespace k31::run {

// The ids of one sequence: "1114,259,1983".
Result<std::vector<int32_t>> parse_ids(std::string_view text);

// The ids of a file, one sequence a line.
Result<std::vector<std::vector<int32_t>>> read_ids(const std::string &path);

// Adds --tokens; a list that is wrong is wrong usage.
CLI::Option *add_tokens(CLI::App &app, std::vector<int32_t> &ids, const std::string &description);

} // namespace k31::run
