// Weights from their source to the arenas, in the layout that the plan gives.
#pragma once
#include "runtime/base/result.h"
#include "runtime/schema/plan_generated.h"
#include "runtime/weights/placement.h"
#include "runtime/weights/source.h"
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace k31::weights {

// Called on the thread that called load(), now and then and at the end; bytes as they land in the arenas.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

// Bytes of the buffer of one sink.
constexpr uint64_t kBuffer = 4u << 20;

// Where the bytes of one reader go: the memory of the host, or that of a device. Used by one thread.
class Sink {
public:
  virtual ~Sink() = default;
  // The place itself where the host can write to it: bytes are then read straight into it. Else null.
  virtual std::byte *direct(uint32_t arena, uint64_t offset) = 0;
  // kBuffer bytes that may be filled; place() or put() take them from its front and end its use.
  virtual Result<std::span<std::byte>> buffer() = 0;
  // Rows [row, row + count) of a member, whole, from the buffer to their places. `member`: the member's offset in its arena.
  virtual Result<void> place(const Layout &layout, uint64_t row, uint64_t count, uint32_t arena, uint64_t member) = 0;
  // The first bytes of the buffer to one place.
  virtual Result<void> put(uint64_t bytes, uint32_t arena, uint64_t offset) = 0;
  // Waits until everything is in place.
  virtual Result<void> finish() = 0;
};

// Called on the thread of each reader.
using MakeSink = std::function<Result<std::unique_ptr<Sink>>()>;

// What a rank reads: its coordinate on each axis, and how many ranks there are on it, are the mesh's.
struct Holder {
  const plan::Mesh &mesh;
  uint32_t rank = 0;
};

// What the rank holds of a stack.
Share held_by(const Holder &holder, const plan::WeightStack &stack);

// Reads what the rank holds with up to `threads` readers, 16 at most: straight into place where the sink allows it and rows stay
// together, else through the buffers. No byte is read twice, and none that the rank does not hold, but that rows are read whole
// when less than kSlice bytes of each are used: less than a page would not be fetched anyway.
constexpr uint64_t kSlice = 2048;
Result<void> load(const plan::Plan &plan, const Holder &holder, const Source &source, const MakeSink &sink, int threads,
                  const Progress &progress);

} // namespace k31::weights
