// Is the checkpoint in a folder the one that the plan was made from?
#pragma once
#include "runtime/base/result.h"
#include "runtime/schema/plan_generated.h"
#include <string>

namespace k31::weights {

// Compares the files' sizes and the hash over their headers; when the hash differs, names the first tensor that does.
Result<void> verify(const plan::Plan &plan, const std::string &folder);

} // namespace k31::weights
