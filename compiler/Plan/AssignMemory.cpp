// assign-memory: an offset for every plan.alloc. Two buffers share bytes when every use of one is ordered before every use of the
// other, on a host by whole steps (HostSteps.h); each gets the smallest gap that fits, biggest or first used buffers first.
// Entries never run at the same time, so all of them lay their buffers over the same arenas, which are as large as the largest
// entry needs.
#include "compiler/Passes.h"
#include "compiler/Plan/Commands.h"
#include "compiler/Plan/HostSteps.h"
#include "compiler/Sizes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace k31 {
#define GEN_PASS_DEF_ASSIGNMEMORY
#include "compiler/Passes.h.inc"
} // namespace k31

using namespace mlir;
using namespace k31;
using namespace k31::planir;

namespace {

struct Buffer {
  AllocOp alloc;
  int64_t bytes;
  unsigned first = ~0u, last = 0; // numbers of the commands that use it, or of their steps on a host; both included
  bool always = false;            // an input or output: its bytes belong to the engine between runs
  // With several streams, the commands done on each: once every user is done at least, and before any user begins at most.
  Order::Clock done, ready;
  int64_t offset = -1;
};

class Planner {
public:
  Planner(EntryOp entry, bool host) : entry(entry), order(entry), oneStream(entry.getStreams() <= 1), host(host && oneStream) {}

  // Offsets for all buffers of the entry; bytes needed, by arena.
  LogicalResult run(llvm::MapVector<StringAttr, int64_t> &arenas) {
    collect();
    for (auto &[arena, buffers] : byArena) {
      int64_t bytes = place(buffers);
      int64_t sum = 0;
      for (Buffer &buffer : buffers)
        sum += buffer.bytes;
      emitRemark(entry.getLoc()) << "@" << entry.getSymName() << " " << arena.getValue() << ": " << bytes << " bytes for "
                                 << buffers.size() << " buffers of " << sum << ", at most " << largestLive(buffers)
                                 << " live at once";
      int64_t &most = arenas[arena];
      most = std::max(most, bytes);
    }
    return resolve();
  }

private:
  EntryOp entry;
  Order order;
  bool oneStream, host;
  unsigned commands = 0;
  llvm::MapVector<StringAttr, SmallVector<Buffer>> byArena;

  void collect() {
    DenseMap<Operation *, unsigned> number;
    if (host)
      number = hostStepsOf(entry);
    for (Operation &op : entry.getBody().front())
      if (streamOf(&op)) {
        if (!host)
          number[&op] = commands;
        ++commands; // at least as many as there are numbers
      }
    for (auto alloc : llvm::make_early_inc_range(entry.getBody().front().getOps<AllocOp>())) {
      Buffer buffer{alloc, aligned(byteSize(alloc.getType()))};
      SmallVector<Value> values{alloc.getResult()};
      while (!values.empty())
        for (Operation *user : values.pop_back_val().getUsers()) {
          if (auto view = dyn_cast<ViewOp>(user)) {
            values.push_back(view);
          } else if (isa<InputOp, OutputOp>(user)) {
            buffer.always = true;
          } else {
            buffer.first = std::min(buffer.first, number[user]);
            buffer.last = std::max(buffer.last, number[user]);
            if (!oneStream)
              take(buffer, order.doneBy(user));
          }
        }
      if (buffer.always)
        buffer.first = 0, buffer.last = commands;
      if (buffer.first == ~0u) {
        if (alloc.use_empty())
          alloc.erase(); // nothing ever touches it
        else
          buffer.first = 0; // views that nothing uses
      }
      if (buffer.first != ~0u)
        byArena[alloc.getArenaAttr().getAttr()].push_back(std::move(buffer));
    }
  }

  static void take(Buffer &buffer, const Order::Clock &user) {
    if (buffer.done.empty())
      buffer.done = buffer.ready = user;
    for (auto [done, ready, clock] : llvm::zip_equal(buffer.done, buffer.ready, user))
      done = std::max(done, clock), ready = std::min(ready, clock);
  }

  // Must the two not share bytes?
  bool conflict(const Buffer &a, const Buffer &b) const {
    if (a.first <= b.last && b.first <= a.last)
      return true;
    if (oneStream)
      return false;
    const Buffer &earlier = a.last < b.first ? a : b, &later = a.last < b.first ? b : a;
    return llvm::any_of(llvm::zip(earlier.done, later.ready), // one that nothing uses has none
                        [](auto clocks) { return std::get<0>(clocks) > std::get<1>(clocks); });
  }

  // Best fit in the given order; returns the end of the last buffer.
  int64_t fit(MutableArrayRef<Buffer> buffers, ArrayRef<unsigned> sequence, SmallVectorImpl<int64_t> &offsets) const {
    offsets.assign(buffers.size(), 0);
    SmallVector<unsigned> placed; // by offset
    int64_t end = 0;
    for (unsigned index : sequence) {
      int64_t need = buffers[index].bytes, best = -1, bestGap = INT64_MAX, cursor = 0;
      for (unsigned other : placed) {
        if (!conflict(buffers[index], buffers[other]))
          continue;
        int64_t gap = offsets[other] - cursor;
        if (gap >= need && gap < bestGap)
          best = cursor, bestGap = gap;
        cursor = std::max(cursor, offsets[other] + buffers[other].bytes);
      }
      offsets[index] = best >= 0 ? best : cursor;
      end = std::max(end, offsets[index] + need);
      placed.insert(llvm::upper_bound(placed, index, [&](unsigned a, unsigned b) { return offsets[a] < offsets[b]; }), index);
    }
    return end;
  }

  // The better of two orders: by size, and by first use (good when one long chain of equal buffers leads through the entry).
  int64_t place(MutableArrayRef<Buffer> buffers) const {
    SmallVector<unsigned> bySize = llvm::to_vector(llvm::seq<unsigned>(0, buffers.size())), byUse = bySize;
    llvm::sort(bySize, [&](unsigned a, unsigned b) { return std::pair(-buffers[a].bytes, a) < std::pair(-buffers[b].bytes, b); });
    llvm::sort(byUse, [&](unsigned a, unsigned b) { return std::pair(buffers[a].first, a) < std::pair(buffers[b].first, b); });
    SmallVector<int64_t> offsets, otherOffsets;
    int64_t end = fit(buffers, bySize, offsets), otherEnd = fit(buffers, byUse, otherOffsets);
    if (otherEnd < end)
      end = otherEnd, offsets.swap(otherOffsets);
    for (auto [buffer, offset] : llvm::zip(buffers, offsets))
      buffer.offset = offset;
    return end;
  }

  int64_t largestLive(ArrayRef<Buffer> buffers) const {
    SmallVector<int64_t> change(commands + 2);
    for (const Buffer &buffer : buffers)
      change[buffer.first] += buffer.bytes, change[buffer.last + 1] -= buffer.bytes;
    int64_t live = 0, most = 0;
    for (int64_t delta : change)
      most = std::max(most, live += delta);
    return most;
  }

  // Allocs and views become slices.
  LogicalResult resolve() {
    for (auto &[arena, buffers] : byArena)
      for (Buffer &buffer : buffers) {
        OpBuilder builder(buffer.alloc);
        auto slice = SliceOp::create(builder, buffer.alloc.getLoc(), buffer.alloc.getType(), buffer.alloc.getArenaAttr(),
                                     builder.getI64IntegerAttr(buffer.offset));
        buffer.alloc.replaceAllUsesWith(slice.getResult());
        buffer.alloc.erase();
      }
    for (auto view : llvm::make_early_inc_range(entry.getBody().front().getOps<ViewOp>())) { // sources stand before their views
      auto source = view.getSource().getDefiningOp<SliceOp>();
      if (!source)
        return view.emitOpError("is of a buffer that has no offset");
      OpBuilder builder(view);
      auto slice = SliceOp::create(builder, view.getLoc(), view.getType(), source.getArenaAttr(),
                                   builder.getI64IntegerAttr(source.getOffset() + view.getOffset()));
      view.replaceAllUsesWith(slice.getResult());
      view.erase();
    }
    for (auto slice : llvm::make_early_inc_range(entry.getBody().front().getOps<SliceOp>()))
      if (slice->use_empty())
        slice.erase();
    return success();
  }
};

struct AssignMemoryPass : k31::impl::AssignMemoryBase<AssignMemoryPass> {
  void runOnOperation() override {
    llvm::MapVector<StringAttr, int64_t> arenas;
    const bool host = isHostPlan(getOperation());
    for (auto entry : getOperation().getOps<EntryOp>())
      if (failed(Planner(entry, host).run(arenas)))
        return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto [name, bytes] : arenas) {
      auto arena = symbols.lookup<ArenaOp>(name);
      if (!arena) {
        getOperation().emitError("no plan.arena is named @") << name.getValue() << ", where buffers are allocated";
        return signalPassFailure();
      }
      arena.setBytes(std::max<int64_t>(arena.getBytes(), bytes));
    }
  }
};

} // namespace
