// The commands of an entry: what bytes each touches, and which are ordered before which.
#pragma once
#include "dialects/Plan/Plan.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace k31::planir {

struct Use {
  mlir::Value buffer;
  Access access;
};
// What a launch, collective or copy touches; nothing for other ops.
llvm::SmallVector<Use> usesOf(mlir::Operation *command);

// The stream of a command, record and wait included; empty for other ops.
std::optional<uint32_t> streamOf(mlir::Operation *op);

// Bytes [begin, end) of a buffer that has no offset yet (its plan.alloc), or of an arena.
struct Range {
  mlir::Value alloc;
  mlir::StringAttr arena;
  int64_t begin = 0, end = 0;
  bool overlaps(const Range &other) const {
    return alloc == other.alloc && arena == other.arena && begin < other.end && other.begin < end;
  }
};
// Looks through plan.view.
Range rangeOf(mlir::Value buffer);

// A command and the bytes of one of its uses.
struct Touch {
  mlir::Operation *command;
  mlir::Value buffer; // as it is named there, views not looked through
  Range range;
  Access access;
  bool writes() const { return access != Access::read; }
  // Must one of the two wait for the other?
  bool conflicts(const Touch &other) const { return (writes() || other.writes()) && range.overlaps(other.range); }
};
llvm::SmallVector<Touch> touchesOf(mlir::Operation *command);

// Happens-before of an entry by vector clocks: stream order, and a record before what follows its waits.
class Order {
public:
  explicit Order(uint32_t streams) : now(streams, Clock(streams)) {}
  explicit Order(EntryOp entry);

  void add(mlir::Operation *command);                      // in program order
  void putBehind(uint32_t stream, mlir::Operation *first); // whatever the stream does next, as by an event behind `first`
  bool before(mlir::Operation *first, mlir::Operation *second) const;
  bool beforeNext(mlir::Operation *first, uint32_t stream) const; // before whatever the stream does next
  bool isRecorded(uint32_t event) const { return events.contains(event); }

  // Commands done on each stream.
  using Clock = llvm::SmallVector<uint32_t, 4>;
  // When the command is done: itself and all before it. Every command of an entry has one.
  const Clock &doneBy(mlir::Operation *command) const { return clocks.find(command)->second; }

private:
  llvm::SmallVector<Clock, 4> now; // of each stream
  llvm::DenseMap<uint32_t, Clock> events;
  llvm::DenseMap<mlir::Operation *, Clock> clocks;
};

} // namespace k31::planir
