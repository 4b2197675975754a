// What one plan op alone can say about itself; check-plan looks at entries as a whole.
#include "dialects/Plan/Plan.h"
#include "dialects/Support/Pattern.h"
#include "dialects/Support/Verify.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace k31;
using namespace k31::planir;

// Bytes of a buffer, which is packed when an element has less than a byte.
static int64_t bytesOf(Value buffer) {
  auto type = cast<RankedTensorType>(buffer.getType());
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return -1;
  return llvm::divideCeil(static_cast<uint64_t>(type.getNumElements()) * type.getElementTypeBitWidth(), 8);
}

static LogicalResult isBuffer(Operation *op, StringRef name, Value buffer) {
  if (bytesOf(buffer) > 0)
    return success();
  return op->emitOpError() << name << " is " << buffer.getType() << ", expected a static shape of one byte or more";
}

static LogicalResult atLeast(Operation *op, std::initializer_list<std::pair<StringRef, int64_t>> values, int64_t low) {
  for (auto &[name, value] : values)
    if (value < low)
      return op->emitOpError() << "expected " << name << " of " << low << " or more, found " << value;
  return success();
}

// The stream and the event of a command must exist in its entry.
static LogicalResult isOnStream(Operation *op, int32_t stream, std::optional<int32_t> event = std::nullopt) {
  auto entry = op->getParentOfType<EntryOp>();
  if (!entry)
    return op->emitOpError() << "is a command: expected it inside plan.entry";
  int32_t streams = entry.getStreams(), events = entry.getEvents();
  if (stream < 0 || stream >= streams)
    return op->emitOpError() << "is on stream " << stream << ", but the entry has " << streams;
  if (event && (*event < 0 || *event >= events))
    return op->emitOpError() << "names event " << *event << ", but the entry has " << events;
  return success();
}

template <typename Target>
static LogicalResult refersTo(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name, StringRef what) {
  if (symbols.lookupNearestSymbolFrom<Target>(op, name))
    return success();
  return op->emitOpError() << name << " is not a " << what;
}

LogicalResult SliceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return refersTo<ArenaOp>(*this, symbols, getArenaAttr(), "plan.arena");
}
LogicalResult AllocOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return refersTo<ArenaOp>(*this, symbols, getArenaAttr(), "plan.arena");
}
LogicalResult WeightsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return refersTo<ArenaOp>(*this, symbols, getArenaAttr(), "plan.arena");
}
LogicalResult StateMemberOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return refersTo<ArenaOp>(*this, symbols, getArenaAttr(), "plan.arena");
}
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return refersTo<KernelOp>(*this, symbols, getKernelAttr(), "plan.kernel");
}
LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return getKernel() ? refersTo<KernelOp>(*this, symbols, getKernelAttr(), "plan.kernel") : success();
}
LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (Attribute image : getImages())
    if (failed(refersTo<ImageOp>(*this, symbols, cast<FlatSymbolRefAttr>(image), "plan.image")))
      return failure();
  return success();
}

LogicalResult MeshOp::verify() {
  return atLeast(*this, {{"tp", getTp()}, {"dp", getDp()}, {"ep", getEp()}, {"pp", getPp()}, {"node", getNode()}}, 1);
}

LogicalResult ArenaOp::verify() {
  if (failed(atLeast(*this, {{"bytes", getBytes()}}, 0)))
    return failure();
  int64_t alignment = static_cast<int32_t>(getAlignment());
  if (alignment < 1 || !llvm::isPowerOf2_64(alignment))
    return emitOpError() << "expected an alignment that is a power of two, found " << alignment;
  return success();
}

LogicalResult WeightsOp::verify() {
  size_t members = getMembers().size(), sources = std::max<size_t>(members, 1);
  if (placeholders(getPattern()) != (members ? 1u : 0u))
    return emitOpError() << "pattern has " << placeholders(getPattern()) << " placeholders, but there are " << members
                         << " members";
  if (getOffsets().size() != sources || getFiles().size() != sources)
    return emitOpError() << "has " << getFiles().size() << " files and " << getOffsets().size() << " offsets, expected "
                         << sources << ", one a member";
  if (failed(atLeast(*this,
                     {{"dest", getDest()},
                      {"stride", getStride()},
                      {"row_begin", getRowBegin()},
                      {"byte_begin", getByteBegin()},
                      {"group_begin", getGroupBegin()}},
                     0)) ||
      failed(atLeast(*this, {{"row_count", getRowCount()}, {"byte_count", getByteCount()}, {"group", getGroup()}}, 1)))
    return failure();
  if (getByteBegin() + getByteCount() > getRowBytes())
    return emitOpError() << "bytes [" << getByteBegin() << ", " << getByteBegin() + getByteCount() << ") do not lie in a row of "
                         << getRowBytes() << " bytes";
  if (!getShardAxis() != !getShardOf())
    return emitOpError() << "a shard needs both an axis and what is divided";
  return success();
}

LogicalResult StateOp::verify() {
  return failure(
      failed(atLeast(*this, {{"block_tokens", static_cast<int32_t>(getBlockTokens())}}, 1)) ||
      failed(atLeast(*this, {{"blocks", static_cast<int32_t>(getBlocks())}, {"slots", static_cast<int32_t>(getSlots())}}, 0)));
}

LogicalResult StateMemberOp::verify() {
  return failure(
      failed(atLeast(
          *this,
          {{"layer", static_cast<int32_t>(getLayer())}, {"offset", getOffset()}, {"codes", static_cast<int32_t>(getCodes())}},
          0)) ||
      failed(atLeast(*this, {{"unit_bytes", getUnitBytes()}, {"units", static_cast<int32_t>(getUnits())}}, 1)));
}

LogicalResult KernelOp::verify() {
  if (getSymbol().empty() != getImages().empty())
    return emitOpError() << "has " << getImages().size() << " images and the symbol '" << getSymbol()
                         << "': expected both, or neither before compile-kernels";
  if (getSymbol().empty() && !getSpec())
    return emitOpError() << "has neither code nor a spec to make it from";
  for (Region &body : getBodies())
    if (!body.hasOneBlock())
      return emitOpError() << "expected bodies of one block";
  return success();
}

LogicalResult EntryOp::verify() {
  if (failed(atLeast(*this,
                     {{"rows", static_cast<int32_t>(getRows())},
                      {"segments", static_cast<int32_t>(getSegments())},
                      {"streams", static_cast<int32_t>(getStreams())}},
                     1)) ||
      failed(atLeast(*this,
                     {{"logit_rows", static_cast<int32_t>(getLogitRows())},
                      {"stage", static_cast<int32_t>(getStage())},
                      {"events", static_cast<int32_t>(getEvents())}},
                     0)))
    return failure();
  if (getSegments() > getRows())
    return emitOpError() << "has " << getSegments() << " segments in " << getRows() << " rows: a segment has one row or more";
  return success();
}

LogicalResult SliceOp::verify() {
  return failure(failed(isBuffer(*this, "result", getResult())) || failed(atLeast(*this, {{"offset", getOffset()}}, 0)));
}

LogicalResult AllocOp::verify() { return isBuffer(*this, "result", getResult()); }

LogicalResult ViewOp::verify() {
  if (failed(isBuffer(*this, "source", getSource())) || failed(isBuffer(*this, "result", getResult())))
    return failure();
  int64_t begin = getOffset(), end = begin + bytesOf(getResult());
  if (begin < 0 || end > bytesOf(getSource()))
    return emitOpError() << "bytes [" << begin << ", " << end << ") do not lie in the " << bytesOf(getSource())
                         << " bytes of the source";
  return success();
}

static LogicalResult haveAccess(Operation *op, OperandRange args, ArrayRef<int32_t> accesses) {
  if (accesses.size() != args.size())
    return op->emitOpError() << "has " << args.size() << " arguments, but " << accesses.size() << " accesses";
  for (int32_t access : accesses)
    if (!symbolizeAccess(access))
      return op->emitOpError() << "has access " << access << ", expected 0 (read), 1 (write) or 2 (update)";
  for (Value arg : args)
    if (failed(isBuffer(op, "an argument", arg)))
      return failure();
  return success();
}

// How a kernel is started: by a launch, or by a collective that goes by peer.
static LogicalResult isStart(Operation *op, ArrayRef<int32_t> grid, int32_t block, int32_t smem) {
  if (grid.size() != 3 || llvm::any_of(grid, [](int32_t size) { return size < 1; }))
    return op->emitOpError() << "expected a grid of three sizes of 1 or more, found " << shapeText(SmallVector<int64_t>(grid));
  return failure(failed(atLeast(op, {{"block", block}}, 1)) || failed(atLeast(op, {{"smem", smem}}, 0)));
}

LogicalResult LaunchOp::verify() {
  if (failed(haveAccess(*this, getArgs(), getAccess())) ||
      failed(isStart(*this, getGrid(), static_cast<int32_t>(getBlock()), static_cast<int32_t>(getSmem()))))
    return failure();
  for (Attribute attribute : getMaps().value_or(ArrayAttr::get(getContext(), {}))) {
    auto map = cast<DictionaryAttr>(attribute);
    for (StringRef field : {"arg", "columns", "rows", "row_bytes", "box_columns", "box_rows"})
      if (auto value = map.getAs<IntegerAttr>(field); !value || value.getInt() < (field == "arg" ? 0 : 1))
        return emitOpError() << "has a tensor map without '" << field << "', or with one below " << (field == "arg" ? 0 : 1);
    if (map.getAs<IntegerAttr>("arg").getInt() >= static_cast<int64_t>(getArgs().size()) || !map.getAs<StringAttr>("dtype"))
      return emitOpError() << "has a tensor map without dtype, or of an argument that it does not have";
  }
  return isOnStream(*this, getStream());
}

LogicalResult CopyOp::verify() {
  if (failed(isBuffer(*this, "source", getSource())) || failed(isBuffer(*this, "destination", getDest())) ||
      failed(sameSize(*this, "bytes", "source", bytesOf(getSource()), "destination", bytesOf(getDest()))))
    return failure();
  return isOnStream(*this, getStream());
}

LogicalResult CollectiveOp::verify() {
  if (failed(isBuffer(*this, "source", getSource())) || failed(isBuffer(*this, "destination", getDest())) ||
      failed(atLeast(*this, {{"count", getCount()}}, 1)))
    return failure();
  if (getAxis() == MeshAxis::none)
    return emitOpError() << "expected a mesh axis, found none";
  // A plan file knows a buffer as bytes only; read back, it has as many elements of u8.
  auto source = cast<RankedTensorType>(getSource().getType());
  int64_t elements = source.getNumElements();
  if (source.getElementType().isInteger(8))
    elements /= llvm::StringSwitch<int64_t>(getDtype()).Cases({"f32", "i32"}, 4).Case("bf16", 2).Default(1);
  if (static_cast<int64_t>(getCount()) != elements)
    return emitOpError() << "count is " << getCount() << ", but the source has " << elements << " elements";
  if (const bool shares = getKind() == CollectiveKind::dispatch || getKind() == CollectiveKind::combine; getLive() && !shares)
    return emitOpError() << "has live pieces; dispatch and combine do";
  if (getLive() && (failed(isBuffer(*this, "live", getLive())) || failed(atLeast(*this, {{"unit", getUnit()}}, 1))))
    return failure();
  const bool peer = getTransport() == Transport::peer;
  if (peer ? !getKernel() || !getGrid() || !getArea() : getKernel() || getGrid() || getArea())
    return emitOpError() << (peer ? "goes by peer, which needs a kernel, its grid and an area"
                                  : "has a kernel or an area; collectives that go by peer do");
  if (peer && (failed(isStart(*this, *getGrid(), static_cast<int32_t>(getBlock()), static_cast<int32_t>(getSmem()))) ||
               failed(isBuffer(*this, "area", getArea()))))
    return failure();
  if (const bool sums = getKind() == CollectiveKind::all_reduce || getKind() == CollectiveKind::reduce_scatter;
      !getMore().empty() && (!peer || !sums))
    return emitOpError() << "has arguments of a row op; sums that go by peer may have them";
  if (failed(haveAccess(*this, getMore(), getAccess())))
    return failure();
  return isOnStream(*this, getStream());
}

LogicalResult RecordOp::verify() { return isOnStream(*this, getStream(), getEvent()); }
LogicalResult WaitOp::verify() { return isOnStream(*this, getStream(), getEvent()); }

LogicalResult NoteOp::verify() {
  if (getCandidates().size() != getNanoseconds().size())
    return emitOpError() << "has " << getCandidates().size() << " candidates, but " << getNanoseconds().size() << " times";
  if (llvm::any_of(getNanoseconds(), [](int64_t time) { return time < 0; }))
    return emitOpError() << "has a time below 0";
  if (!getCandidates().empty() && !llvm::is_contained(getCandidates(), getChoiceAttr()))
    return emitOpError() << "chose \"" << getChoice() << "\", which is none of its candidates";
  return success();
}

LogicalResult PlanDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kNotes)
    return op->emitOpError() << "has the attribute " << attribute.getName() << ", which plan does not know";
  if (!isa<LaunchOp, CollectiveOp, EntryOp>(op))
    return op->emitOpError() << "has notes; launches, collectives and entries do";
  auto notes = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!notes || !llvm::all_of(notes, [](Attribute note) { return isa<FlatSymbolRefAttr>(note); }))
    return op->emitOpError() << "has notes " << attribute.getValue() << ", expected symbols of plan.note";
  return success();
}
