// schedule: events between the streams of an entry, so that every command runs after those whose bytes it needs.
//
// A host knows no events: everything stays on stream 0 there, in the order of the steps that its threads walk together
// (HostSteps.h), so that what can run at once stands together. Commands that come
// with other streams keep them: a command waits for each earlier one on another stream that touches the same bytes, one of the
// two writing, unless events that exist already order them.
#include "compiler/Passes.h"
#include "compiler/Plan/Commands.h"
#include "compiler/Plan/HostSteps.h"
#include "mlir/IR/Builders.h"

namespace k31 {
#define GEN_PASS_DEF_SCHEDULE
#include "compiler/Passes.h.inc"
} // namespace k31

using namespace mlir;
using namespace k31;
using namespace k31::planir;

namespace {

class Scheduler {
public:
  Scheduler(EntryOp entry, uint32_t streams) : entry(entry), order(streams), nextEvent(entry.getEvents()) {}

  uint32_t run() {
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
      if (!streamOf(&op))
        continue;
      SmallVector<Touch> touches = touchesOf(&op);
      for (const Touch &touch : touches)
        waitFor(&op, touch);
      earlier.append(touches);
      order.add(&op);
    }
    return nextEvent;
  }

private:
  EntryOp entry;
  Order order;
  uint32_t nextEvent;
  SmallVector<Touch> earlier;
  DenseMap<Operation *, uint32_t> recorded; // events of commands

  void waitFor(Operation *command, const Touch &touch) {
    uint32_t stream = *streamOf(command);
    for (const Touch &other : llvm::reverse(earlier)) // the latest first: its event often covers the rest
      if (touch.conflicts(other) && !order.beforeNext(other.command, stream))
        addEvent(other.command, command);
  }

  // A record right behind `first` and a wait right before `second`.
  void addEvent(Operation *first, Operation *second) {
    OpBuilder builder(first->getContext());
    auto [event, isNew] = recorded.try_emplace(first, nextEvent);
    if (isNew) {
      ++nextEvent;
      builder.setInsertionPointAfter(first);
      RecordOp::create(builder, first->getLoc(), event->second, *streamOf(first));
    }
    builder.setInsertionPoint(second);
    WaitOp::create(builder, second->getLoc(), event->second, *streamOf(second));
    rebuild(second);
  }

  // The clocks again up to `end`: a record was put among commands that are already counted.
  void rebuild(Operation *end) {
    order = Order(entry.getStreams());
    for (Operation &op : entry.getBody().front()) {
      if (&op == end)
        break;
      order.add(&op);
    }
  }
};

struct SchedulePass : k31::impl::ScheduleBase<SchedulePass> {
  void runOnOperation() override {
    const bool host = isHostPlan(getOperation());
    for (auto entry : getOperation().getOps<EntryOp>()) {
      uint32_t streams = 1;
      for (Operation &op : entry.getBody().front())
        streams = std::max(streams, streamOf(&op).value_or(0) + 1);
      entry.setStreams(streams);
      if (streams == 1 && host)
        orderByHostSteps(entry);
      if (streams > 1)
        entry.setEvents(Scheduler(entry, streams).run());
    }
  }
};

} // namespace
