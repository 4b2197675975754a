// Runs two plans side by side, operation by operation: launches are matched by label, kernel and order.
//
// The reference runs on a thread of its own and stops in front of and behind every launch that has a counterpart, so that both
// launches' arguments can be looked at, and changed, at the same time.
#pragma once
#include "runtime/schema/plan_generated.h"
#include "runtime/session.h"
#include "tools/k31_run/compare.h"

namespace k31::run {

// A matched pair of launches that have just run.
struct Pair {
  const plan::Launch *plan = nullptr, *reference = nullptr;
  uint32_t output = 0; // number among the launch's arguments
  std::string label;   // of this output
  Values a, b;         // what the plan's and the reference's launch wrote to that argument
};

struct LockstepOptions {
  bool from_reference = false; // the plan's launch gets the reference's inputs
  std::function<void(const Pair &)> compare;
};

struct LockstepReport {
  uint32_t matched = 0, unmatched = 0; // launches of the plan
  std::vector<std::string> alone;      // labels of launches of the plan without a counterpart, the first few
  uint32_t kept_inputs = 0;            // with from_reference: inputs of another type or size, which stayed the plan's own
};

Result<LockstepReport> run_lockstep(Session &plan, uint32_t plan_entry, std::span<const NamedInput> plan_inputs,
                                    Session &reference, uint32_t reference_entry, std::span<const NamedInput> reference_inputs,
                                    const LockstepOptions &options);

} // namespace k31::run
