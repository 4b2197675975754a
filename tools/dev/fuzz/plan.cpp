#include "runtime/plan/plan_file.h"
#include "tools/dev/fuzz/targets.h"
#include <cstring>
#include <memory>

// In memory of the exact length, aligned as a map is.
void k31::fuzz::plan(Bytes bytes) {
  std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  if (!bytes.empty())
    memcpy(copy.get(), bytes.data(), bytes.size());
  const auto result = check_plan({copy.get(), bytes.size()});
  if (!result)
    require_one_line(result.error().message);
  else
    require((*result)->major() == 1 && (*result)->entries() != nullptr, "an accepted plan has its required parts");
}
