// The base tokens of a tiktoken.model file: one line "base64(token bytes) rank" each; the rank is the id.
#pragma once
#include "runtime/base/result.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace k31::text {

class Vocabulary {
public:
  // Untrusted input: malformed lines, duplicates, gaps and missing single bytes are refused with the line.
  static Result<Vocabulary> parse(std::string_view file);

  int32_t size() const { return int32_t(tokens.size()); }
  std::string_view bytes(int32_t id) const { return tokens[size_t(id)]; }

  // The id of a byte string, or -1.
  int32_t find(std::string_view token) const {
    const auto it = ids.find(token);
    return it == ids.end() ? -1 : it->second;
  }

private:
  std::unique_ptr<char[]> storage; // all token bytes; the views below point into it
  std::vector<std::string_view> tokens;
  std::unordered_map<std::string_view, int32_t> ids;
};

} // namespace k31::text
