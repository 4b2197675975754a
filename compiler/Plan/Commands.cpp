#include "compiler/Plan/Commands.h"
#include "compiler/Sizes.h"

using namespace mlir;
using namespace k31;
using namespace k31::planir;

SmallVector<Use> planir::usesOf(Operation *command) {
  SmallVector<Use> uses;
  if (auto launch = dyn_cast<LaunchOp>(command)) {
    for (auto [buffer, access] : llvm::zip(launch.getArgs(), launch.getAccess()))
      uses.push_back({buffer, static_cast<Access>(access)});
  } else if (auto collective = dyn_cast<CollectiveOp>(command)) {
    // One side of a send or recv is another rank; the plan then names the buffer twice.
    if (collective.getKind() != CollectiveKind::recv)
      uses.push_back({collective.getSource(), Access::read});
    if (collective.getKind() != CollectiveKind::send)
      uses.push_back({collective.getDest(), Access::write});
    if (Value live = collective.getLive())
      uses.push_back({live, Access::read});
    for (auto [buffer, access] : llvm::zip(collective.getMore(), collective.getAccess())) // of the row op on its sum
      uses.push_back({buffer, static_cast<Access>(access)});
    if (Value area = collective.getArea())
      uses.push_back({area, Access::update});
  } else if (auto copy = dyn_cast<CopyOp>(command)) {
    uses = {{copy.getSource(), Access::read}, {copy.getDest(), Access::write}};
  }
  return uses;
}

std::optional<uint32_t> planir::streamOf(Operation *op) {
  return TypeSwitch<Operation *, std::optional<uint32_t>>(op)
      .Case<LaunchOp, CollectiveOp, CopyOp, RecordOp, WaitOp>([](auto command) { return command.getStream(); })
      .Default(std::nullopt);
}

Range planir::rangeOf(Value buffer) {
  int64_t begin = 0, bytes = byteSize(buffer.getType());
  while (auto view = buffer.getDefiningOp<ViewOp>()) {
    begin += view.getOffset();
    buffer = view.getSource();
  }
  if (auto slice = buffer.getDefiningOp<SliceOp>()) {
    begin += slice.getOffset();
    return {Value(), slice.getArenaAttr().getAttr(), begin, begin + bytes};
  }
  return {buffer, StringAttr(), begin, begin + bytes};
}

SmallVector<Touch> planir::touchesOf(Operation *command) {
  return llvm::map_to_vector(usesOf(command),
                             [&](const Use &use) { return Touch{command, use.buffer, rangeOf(use.buffer), use.access}; });
}

Order::Order(EntryOp entry) : Order(entry.getStreams()) {
  for (Operation &op : entry.getBody().front())
    add(&op);
}

static void raise(Order::Clock &clock, const Order::Clock &least) {
  for (auto [mine, theirs] : llvm::zip_equal(clock, least))
    mine = std::max(mine, theirs);
}

void Order::putBehind(uint32_t stream, Operation *first) { raise(now[stream], doneBy(first)); }

void Order::add(Operation *command) {
  std::optional<uint32_t> stream = streamOf(command);
  if (!stream || *stream >= now.size())
    return;
  Clock &clock = now[*stream];
  ++clock[*stream];
  if (auto wait = dyn_cast<WaitOp>(command))
    if (auto event = events.find(wait.getEvent()); event != events.end())
      raise(clock, event->second);
  clocks[command] = clock;
  if (auto record = dyn_cast<RecordOp>(command))
    events[record.getEvent()] = clock;
}

bool Order::before(Operation *first, Operation *second) const {
  auto a = clocks.find(first), b = clocks.find(second);
  if (first == second || a == clocks.end() || b == clocks.end())
    return false;
  uint32_t stream = *streamOf(first);
  return a->second[stream] <= b->second[stream];
}

bool Order::beforeNext(Operation *first, uint32_t stream) const {
  auto a = clocks.find(first);
  uint32_t from = *streamOf(first);
  return a != clocks.end() && a->second[from] <= now[stream][from];
}
