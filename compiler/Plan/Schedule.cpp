// schedule: events between the streams of an entry, so that every command runs after those whose bytes it needs.
//
// A host knows no events: everything stays on stream 0 there, in the order of the steps that its threads walk together
// (HostSteps.h), so that what can run at once stands together. On a GPU collectives get a stream of their own where launches can
// run beside them (Overlap.h). A command waits for each earlier one on another stream that touches the same bytes, one of the two
// writing, unless events that exist already order them.
#include "compiler/Passes.h"
#include "compiler/Plan/Commands.h"
#include "compiler/Plan/HostSteps.h"
#include "compiler/Plan/Overlap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"

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
      for (const Touch &touch : touches)
        earlier[{touch.range.alloc, touch.range.arena}].push_back(touch);
      order.add(&op);
    }
    return nextEvent;
  }

private:
  EntryOp entry;
  Order order;
  uint32_t nextEvent;
  DenseMap<std::pair<Value, Attribute>, SmallVector<Touch, 2>> earlier; // by buffer or arena
  DenseMap<Operation *, uint32_t> recorded;                             // events of commands

  void waitFor(Operation *command, const Touch &touch) {
    uint32_t stream = *streamOf(command);
    auto known = earlier.find({touch.range.alloc, touch.range.arena});
    if (known == earlier.end())
      return;
    for (const Touch &other : llvm::reverse(known->second)) // the latest first: its event often covers the rest
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
    order.putBehind(*streamOf(second), first);
  }
};

struct SchedulePass : k31::impl::ScheduleBase<SchedulePass> {
  llvm::StringMap<FlatSymbolRefAttr> reasons; // notes by their reason: layers of a kind share theirs

  // Unless the options say no.
  bool overlaps() {
    auto keys = getOperation().getOps<KeyOp>();
    auto wish = keys.empty() ? StringAttr() : (*keys.begin()).getOptions().getAs<StringAttr>("overlap");
    return !wish || wish.getValue() != "off";
  }

  void noteOverlap(Company &company) {
    SmallVector<std::string> names;
    for (LaunchOp launch : company.launches) {
      StringRef name = launch.getLabel().value_or("a launch"), rest = name;
      unsigned layer = 0;
      if (rest.consume_front("layers.") && !rest.consumeInteger(10, layer) && rest.consume_front("."))
        name = rest;
      names.push_back(name.str());
    }
    const std::string reason = llvm::join(names, ", ") +
                               (names.size() == 1 ? " needs nothing of it and runs" : " need nothing of it and run") +
                               " on stream 0 meanwhile";
    FlatSymbolRefAttr &symbol = reasons[reason];
    OpBuilder builder(&getContext());
    if (!symbol) {
      SymbolTable symbols(getOperation());
      auto notes = getOperation().getOps<NoteOp>();
      builder.setInsertionPointToStart(getOperation().getBody());
      unsigned number = 0;
      for (NoteOp known : notes)
        builder.setInsertionPointAfter(known), ++number;
      while (symbols.lookup("note." + std::to_string(number)))
        ++number;
      const std::string choice = std::to_string(names.size()) + (names.size() == 1 ? " launch" : " launches") + " beside it";
      symbol =
          FlatSymbolRefAttr::get(NoteOp::create(builder, builder.getUnknownLoc(), "note." + std::to_string(number), "overlap",
                                                choice, reason, builder.getStrArrayAttr({}), builder.getDenseI64ArrayAttr({})));
    }
    auto given = company.collective->getAttrOfType<ArrayAttr>(kNotes);
    SmallVector<Attribute> all = given ? SmallVector<Attribute>(given.getValue()) : SmallVector<Attribute>();
    all.push_back(symbol);
    company.collective->setAttr(kNotes, builder.getArrayAttr(all));
  }

  void runOnOperation() override {
    // One order for all targets, so that k31-run verify finds each operation's counterpart in a plan for another.
    const bool host = isHostPlan(getOperation()), whole = !getOperation().getOps<KeyOp>().empty();
    for (auto entry : getOperation().getOps<EntryOp>()) {
      uint32_t streams = 1;
      if (!host && overlaps())
        for (Company &company : overlapCollectives(entry))
          noteOverlap(company);
      for (Operation &op : entry.getBody().front())
        streams = std::max(streams, streamOf(&op).value_or(0) + 1);
      entry.setStreams(streams);
      if (streams == 1 && whole)
        orderByHostSteps(entry);
      if (streams > 1)
        entry.setEvents(Scheduler(entry, streams).run());
    }
  }
};

} // namespace
