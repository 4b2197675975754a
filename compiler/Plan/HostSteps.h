// Steps of an entry on a host: commands that need nothing from each other are one step and run at once
// (runtime/host/schedule.h). Buffers may share bytes from step to step only, or else reuse would order what could run together.
#pragma once
#include "dialects/Plan/Plan.h"
#include "llvm/ADT/DenseMap.h"

namespace k31::planir {

// Is the plan for a host? By its plan.key; plans without one are not.
bool isHostPlan(mlir::ModuleOp module);

// The step of each command, counted from 0: one behind the last command that it has to wait for. A collective is a step of its
// own.
llvm::DenseMap<mlir::Operation *, unsigned> hostStepsOf(EntryOp entry);

// Puts commands into the order of their steps; those of a step keep theirs.
void orderByHostSteps(EntryOp entry);

} // namespace k31::planir
