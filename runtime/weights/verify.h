// Is the checkpoint in a folder the one that the plan was made from?
#pragma once
#include "runtime/base/result.h"
#include "runtime/schema/plan_generated.h"
#include <string>

namespace k31::weights {

// Compares the files' sizes and the hashes over their headers and config.json; names the file, and the first tensor, that
// differs.
Result<void> verify(const plan::Plan &plan, const std::string &folder);

} // namespace k31::weights
