// A plan as facts that can be compared: named things, each with its fields as text.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace k31::tool {

// "n = 768" or "bf16": what is said of one thing.
using Fields = std::vector<std::string>;

struct FactGroup {
  std::string name;                    // "options", "kernels", ...
  std::map<std::string, Fields> facts; // by the name of the thing
};

// In the order in which people want them: what was asked for first, single commands last. Commands are those of `entries`.
std::vector<FactGroup> factsOf(const plan::Plan &plan, const std::set<std::string> &entries);

} // namespace k31::tool
