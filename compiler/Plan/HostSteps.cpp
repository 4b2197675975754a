#include "compiler/Plan/HostSteps.h"
#include "compiler/Plan/Commands.h"

using namespace mlir;
using namespace k31;
using namespace k31::planir;

bool planir::isHostPlan(ModuleOp module) {
  auto keys = module.getOps<KeyOp>();
  return !keys.empty() && (*keys.begin()).getTarget() == "cpu";
}

namespace {

// What was done so far to one buffer or arena.
struct Past {
  struct Use {
    Range range;
    unsigned step;
  };
  SmallVector<Use> reads, writes;
};

} // namespace

DenseMap<Operation *, unsigned> planir::hostStepsOf(EntryOp entry) {
  DenseMap<Operation *, unsigned> steps;
  DenseMap<std::pair<Value, Attribute>, Past> pasts;
  unsigned next = 0, behindAll = 0; // behindAll: the first step behind the last collective
  for (Operation &op : entry.getBody().front()) {
    if (!streamOf(&op))
      continue;
    const SmallVector<Touch> touches = touchesOf(&op);
    const bool alone = isa<CollectiveOp>(op);
    unsigned step = alone ? next : behindAll;
    auto waitFor = [&](ArrayRef<Past::Use> uses, const Range &range) {
      for (const Past::Use &use : uses)
        if (use.step >= step && use.range.overlaps(range))
          step = use.step + 1;
    };
    for (const Touch &touch : touches) {
      const Past &past = pasts[{touch.range.alloc, touch.range.arena}];
      waitFor(past.writes, touch.range);
      if (touch.writes())
        waitFor(past.reads, touch.range);
    }
    for (const Touch &touch : touches) {
      Past &past = pasts[{touch.range.alloc, touch.range.arena}];
      (touch.writes() ? past.writes : past.reads).push_back({touch.range, step});
    }
    steps[&op] = step;
    next = std::max(next, step + 1);
    if (alone)
      behindAll = next;
  }
  return steps;
}

void planir::orderByHostSteps(EntryOp entry) {
  const DenseMap<Operation *, unsigned> steps = hostStepsOf(entry);
  Block &body = entry.getBody().front();
  SmallVector<Operation *> commands;
  for (Operation &op : body)
    if (steps.contains(&op))
      commands.push_back(&op);
  llvm::stable_sort(commands, [&](Operation *a, Operation *b) { return steps.lookup(a) < steps.lookup(b); });
  // Behind all buffers and views, which stand for no work.
  for (Operation *command : commands)
    command->moveBefore(&body, body.mightHaveTerminator() ? body.getTerminator()->getIterator() : body.end());
}
