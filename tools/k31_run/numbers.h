// Checks of numbers on the command line, for what the command line's own reader lets pass.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace k31::run {

// An integer of 64 bits, for CLI::Option::check: the reader takes -1 and 2^64 as 2^64 - 1.
inline std::string check_seed(const std::string &text) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size())
    return {};
  return "expected an integer from 0 to 18446744073709551615, found " + text;
}

// A number above or equal to 0, for CLI::Option::check: nothing is above a bound of NaN or infinity.
inline std::string check_bound(const std::string &text) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && std::isfinite(value) && value >= 0
             ? ""
             : "expected a finite number of 0 or more, found " + text;
}

} // namespace k31::run
