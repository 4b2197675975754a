// check-plan: refuses what a runtime must never see. Everything has memory and code, nothing is outside its arena, nothing is
// read before it is written or after another buffer has taken its bytes, and no two commands touch the same bytes, one writing,
// without an order between them.
#include "compiler/LinkCost.h"
#include "compiler/Passes.h"
#include "compiler/Plan/Commands.h"
#include "compiler/Sizes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace k31 {
#define GEN_PASS_DEF_CHECKPLAN
#include "compiler/Passes.h.inc"
} // namespace k31

using namespace mlir;
using namespace k31;
using namespace k31::planir;

namespace {

// The bytes of one arena that commands of the entry have written, each with the buffer through which that was done last.
class Bytes {
public:
  void write(int64_t begin, int64_t end, Value buffer) {
    auto at = runs.lower_bound(begin);
    if (at != runs.begin() && std::prev(at)->second.end > begin)
      --at;
    while (at != runs.end() && at->first < end) {
      auto [from, run] = *at;
      at = runs.erase(at);
      if (from < begin)
        runs[from] = {begin, run.buffer};
      if (run.end > end)
        at = runs.insert_or_assign(end, Run{run.end, run.buffer}).first;
    }
    runs[begin] = {end, buffer};
    writers.insert(buffer);
  }

  enum Found { written, never, overwritten };
  // May [begin, end) be read as `buffer`? What it wrote itself must be there still. A view wrote nothing: it lies in the buffer
  // that was written last, or parts of it were written one by one. (Whether that is the right buffer cannot be seen: a view is
  // a range of bytes by now.)
  Found find(int64_t begin, int64_t end, Value buffer) const {
    auto at = runs.upper_bound(begin);
    if (at != runs.begin())
      --at;
    Found found = written;
    for (int64_t cursor = begin; cursor < end; cursor = at++->second.end) {
      if (at == runs.end() || at->first > cursor || at->second.end <= cursor)
        return never;
      Value writer = at->second.buffer;
      Range range = rangeOf(writer);
      bool holds = range.begin <= begin && end <= range.end, part = begin <= range.begin && range.end <= end;
      if (writer != buffer && (writers.contains(buffer) || !(holds || part)))
        found = overwritten;
    }
    return found;
  }

private:
  struct Run {
    int64_t end;
    Value buffer;
  };
  std::map<int64_t, Run> runs; // by begin, disjoint
  llvm::DenseSet<Value> writers;
};

StringRef labelOf(Operation *command) {
  auto label = command->getAttrOfType<StringAttr>("label");
  return label ? label.getValue() : command->getName().getStringRef();
}

int64_t ranksAlong(const Mesh &mesh, MeshAxis axis) {
  return axis == MeshAxis::none ? 1 : sizeOf(mesh, static_cast<coll::Axis>(axis)); // equal values from 1 on
}

// Bytes that a collective leaves at its destination, of a source of `bytes`; the whole source where it goes to another rank.
int64_t bytesReceived(CollectiveKind kind, int64_t bytes, int64_t ranks) {
  return kind == CollectiveKind::all_gather ? bytes * ranks : kind == CollectiveKind::reduce_scatter ? bytes / ranks : bytes;
}

class EntryChecker {
public:
  EntryChecker(EntryOp entry, SymbolTable &symbols, const Mesh &mesh)
      : entry(entry), symbols(symbols), mesh(mesh), order(entry.getStreams()) {}

  LogicalResult run() {
    for (Operation &op : entry.getBody().front())
      if (failed(check(&op)))
        return failure();
    for (auto &[arena, touches] : touched)
      if (failed(checkRaces(arena, touches)))
        return failure();
    return success();
  }

private:
  EntryOp entry;
  SymbolTable &symbols;
  const Mesh &mesh;
  Order order;
  llvm::MapVector<StringAttr, SmallVector<Touch>> touched;
  DenseMap<StringAttr, Bytes> written;

  LogicalResult check(Operation *op) {
    if (isa<AllocOp, ViewOp>(op))
      return op->emitOpError("has no offset; run assign-memory");
    if (auto slice = dyn_cast<SliceOp>(op))
      return checkSlice(slice);
    std::optional<uint32_t> stream = streamOf(op);
    if (!stream)
      return success();
    if (*stream >= entry.getStreams())
      return op->emitOpError("is on stream ") << *stream << ", but the entry has " << entry.getStreams();
    if (auto wait = dyn_cast<WaitOp>(op); wait && !order.isRecorded(wait.getEvent()))
      return op->emitOpError("waits for event ") << wait.getEvent() << ", which no earlier command records";
    if (auto collective = dyn_cast<CollectiveOp>(op); collective && failed(checkRanks(collective)))
      return failure();
    order.add(op);
    return checkUses(op);
  }

  // What the op alone cannot know: how many ranks take part.
  LogicalResult checkRanks(CollectiveOp op) {
    const CollectiveKind kind = op.getKind();
    const int64_t ranks = ranksAlong(mesh, op.getAxis()), count = op.getCount(), room = byteSize(op.getDest().getType()),
                  needed = bytesReceived(kind, byteSize(op.getSource().getType()), ranks);
    const std::string group = (Twine(ranks) + " ranks of " + stringifyMeshAxis(op.getAxis())).str();
    if (llvm::is_contained({CollectiveKind::reduce_scatter, CollectiveKind::dispatch, CollectiveKind::combine}, kind) &&
        count % ranks)
      return op.emitOpError("shares out ") << count << " elements, which are no equal pieces for the " << group;
    if ((kind == CollectiveKind::send || kind == CollectiveKind::recv) && op.getPeer() >= ranks)
      return op.emitOpError("is with rank ") << op.getPeer() << ", but there are " << group;
    if (room != needed)
      return op.emitOpError("has a destination of ") << room << " bytes, expected " << needed << " over " << group;
    return success();
  }

  LogicalResult checkSlice(SliceOp slice) {
    auto arena = symbols.lookup<ArenaOp>(slice.getArena());
    if (!arena)
      return slice.emitOpError("is in @") << slice.getArena() << ", which is no arena of the plan";
    int64_t bytes = byteSize(slice.getType()), begin = slice.getOffset();
    if (begin < 0 || begin > static_cast<int64_t>(arena.getBytes()) || bytes > static_cast<int64_t>(arena.getBytes()) - begin)
      return slice.emitOpError("has ") << bytes << " bytes at " << begin << ", outside its arena @" << slice.getArena() << " of "
                                       << arena.getBytes();
    return success();
  }

  LogicalResult checkUses(Operation *op) {
    SmallVector<Touch> uses = touchesOf(op);
    for (const Touch &use : uses) {
      const Range &range = use.range;
      if (!range.arena)
        return op->emitOpError("uses a buffer without an offset; run assign-memory");
      ArenaKind kind = symbols.lookup<ArenaOp>(range.arena).getKind();
      if (kind == ArenaKind::weights && use.writes())
        return op->emitOpError("writes to the weights");
      touched[range.arena].push_back(use);
      if ((kind != ArenaKind::activations && kind != ArenaKind::workspace) || use.access == Access::write)
        continue;
      Bytes::Found found = written[range.arena].find(range.begin, range.end, use.buffer);
      if (found != Bytes::written)
        return op->emitOpError("('") << labelOf(op) << "') reads bytes [" << range.begin << ", " << range.end << ") of @"
                                     << range.arena.getValue()
                                     << (found == Bytes::never
                                             ? ", which nothing in the entry has written before"
                                             : ", some of which another buffer has taken since they were written");
    }
    for (unsigned i = 0; i < uses.size(); ++i)
      for (unsigned j = 0; j < i; ++j)
        if (uses[i].conflicts(uses[j]))
          return op->emitOpError("('") << labelOf(op) << "') has overlapping arguments " << j << " and " << i
                                       << ", one of them written";
    for (const Touch &use : uses)
      if (use.writes())
        written[use.range.arena].write(use.range.begin, use.range.end, use.buffer);
    return success();
  }

  // Every pair of overlapping touches, one writing, must be ordered. Sweeps over the bytes with the touches that are open there.
  LogicalResult checkRaces(StringAttr arena, SmallVectorImpl<Touch> &touches) {
    if (entry.getStreams() == 1 || llvm::none_of(touches, [](const Touch &touch) { return touch.writes(); }))
      return success();
    std::sort(touches.begin(), touches.end(), [](const Touch &a, const Touch &b) { return a.range.begin < b.range.begin; });
    SmallVector<Touch> open;
    for (const Touch &touch : touches) {
      llvm::erase_if(open, [&](const Touch &other) { return other.range.end <= touch.range.begin; });
      for (const Touch &other : open)
        if ((touch.writes() || other.writes()) && touch.command != other.command && !order.before(touch.command, other.command) &&
            !order.before(other.command, touch.command)) {
          InFlightDiagnostic error = touch.command->emitOpError("('")
                                     << labelOf(touch.command) << "') and '" << labelOf(other.command) << "' both touch bytes ["
                                     << touch.range.begin << ", " << std::min(touch.range.end, other.range.end) << ") of @"
                                     << arena.getValue() << ", one of them writing, and no event orders them";
          error.attachNote(other.command->getLoc()) << "the other command, on stream " << *streamOf(other.command);
          return error;
        }
      open.push_back(touch);
    }
    return success();
  }
};

LogicalResult checkKernel(planir::KernelOp kernel, SymbolTable &symbols) {
  if (kernel.getSpec())
    return kernel.emitOpError("is not compiled; run compile-kernels");
  if (kernel.getImages().empty() || kernel.getSymbol().empty())
    return kernel.emitOpError("has no image; run compile-kernels");
  for (Attribute image : kernel.getImages())
    if (!symbols.lookup<ImageOp>(cast<FlatSymbolRefAttr>(image).getValue()))
      return kernel.emitOpError("names the image ") << image << ", which the plan does not have";
  return success();
}

// [begin, begin + bytes) must lie inside the arena.
LogicalResult checkInside(Operation *op, SymbolTable &symbols, StringRef name, int64_t begin, int64_t bytes) {
  auto arena = symbols.lookup<ArenaOp>(name);
  if (!arena)
    return op->emitOpError("is in @") << name << ", which is no arena of the plan";
  if (begin < 0 || bytes < 0 || begin > static_cast<int64_t>(arena.getBytes()) ||
      bytes > static_cast<int64_t>(arena.getBytes()) - begin)
    return op->emitOpError("needs ") << bytes << " bytes at " << begin << ", outside its arena @" << name << " of "
                                     << arena.getBytes();
  return success();
}

// Members that a rank has a place for: all of them, or the largest share.
int64_t heldMembers(WeightsOp weights, const Mesh &mesh) {
  const int64_t count = weights.getFiles().size();
  if (weights.getShardOf() != ShardOf::members)
    return count;
  return llvm::divideCeil(count, ranksAlong(mesh, *weights.getShardAxis()));
}

LogicalResult checkWeights(WeightsOp weights, SymbolTable &symbols, const Mesh &mesh) {
  int64_t count = heldMembers(weights, mesh), rows = weights.getRowCount(), group = weights.getGroup();
  if (count == 0 || rows <= 0 || group <= 0)
    return weights.emitOpError("has no member, no row or no group");
  int64_t lastRow = (rows - 1) / group * weights.getGroupStride() + weights.getGroupBegin() + (rows - 1) % group;
  int64_t bytes = (count - 1) * weights.getStride() + lastRow * weights.getDestRowBytes() + weights.getByteCount();
  return checkInside(weights, symbols, weights.getArena(), weights.getDest(), bytes);
}

struct CheckPlanPass : k31::impl::CheckPlanBase<CheckPlanPass> {
  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

  LogicalResult run() {
    SymbolTable symbols(getOperation());
    Mesh mesh; // one rank where the plan does not say
    for (auto op : getOperation().getOps<MeshOp>())
      mesh = {op.getTp(), op.getDp(), op.getEp(), op.getPp(), op.getNode()};
    for (Operation &op : *getOperation().getBody()) {
      LogicalResult result = success();
      if (auto kernel = dyn_cast<planir::KernelOp>(op))
        result = checkKernel(kernel, symbols);
      else if (auto weights = dyn_cast<WeightsOp>(op))
        result = checkWeights(weights, symbols, mesh);
      else if (auto member = dyn_cast<StateMemberOp>(op))
        result = checkInside(member, symbols, member.getArena(), member.getOffset(),
                             static_cast<int64_t>(member.getUnitBytes()) * member.getUnits());
      else if (auto entry = dyn_cast<EntryOp>(op))
        result = EntryChecker(entry, symbols, mesh).run();
      else if (!isa_and_nonnull<PlanDialect>(op.getDialect()))
        result = op.emitOpError("does not belong into a plan; run convert-ops-to-plan");
      if (failed(result))
        return failure();
    }
    return success();
  }
};

} // namespace
