// Cuts text into the pieces that BPE works on: the released split pattern, after the cuts that bound its work.
#pragma once
#include "runtime/base/result.h"
#include <functional>
#include <memory>
#include <string_view>

namespace k31::text {

class Splitter {
public:
  static Result<Splitter> make();
  Splitter(Splitter &&) noexcept;
  Splitter &operator=(Splitter &&) noexcept;
  ~Splitter();

  // Calls `piece` with each piece as UTF-8, in order; together they are the text. Invalid UTF-8 is read as U+FFFD. The view is
  // valid during the call.
  Result<void> split(std::string_view text, const std::function<void(std::string_view piece)> &piece) const;

private:
  Splitter();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace k31::text
