// Weights are names: what nn.tensor declares, how nn.stack combines it, and what nn.weight may pick.
#include "dialects/NN/NN.h"
#include "dialects/Support/Pattern.h"
#include "dialects/Support/Verify.h"

using namespace mlir;
using namespace k31;
using namespace k31::nn;

// Unit dimensions say nothing about a row: [P, 1, taps] has rows of [taps], and the vector of [1, 1, heads, 1] is [heads].
static SmallVector<int64_t> withoutUnits(ArrayRef<int64_t> shape) {
  return SmallVector<int64_t>(llvm::make_filter_range(shape, [](int64_t size) { return size != 1; }));
}

// A weight as rows: how many, and the shape of one. A stack of rank 1 sees its parts as vectors, whose rows are elements.
struct RowShape {
  int64_t count;
  SmallVector<int64_t> row;
};
static RowShape rowShape(ArrayRef<int64_t> shape, bool vector) {
  if (!vector)
    return {shape.front(), withoutUnits(shape.drop_front())};
  SmallVector<int64_t> elements = withoutUnits(shape);
  if (elements.empty())
    return {1, {}};
  return {elements.front(), SmallVector<int64_t>(ArrayRef(elements).drop_front())};
}

bool TensorOp::hasExperts() { return placeholders(getPattern()) > (getMembers().empty() ? 0u : 1u); }

int64_t TensorOp::getExperts() { return hasExperts() ? cast<RankedTensorType>(getType()).getDimSize(0) : 1; }

LogicalResult TensorOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  size_t found = placeholders(getPattern()), members = getMembers().size();
  if (!type.hasStaticShape())
    return emitOpError() << "expected a static shape, found " << type;
  if (!getMembers().empty() && found < 1)
    return emitOpError() << "has " << members << " members, but its pattern has no {} for the member";
  if (found > (members ? 2u : 1u))
    return emitOpError() << "pattern has " << found << " placeholders, expected at most " << (members ? 2 : 1)
                         << (members ? " (member, expert)" : " (expert)");
  if (hasExperts() && type.getRank() < 2)
    return emitOpError() << "pattern has a {} for the expert, so the type needs a leading expert dimension, found " << type;
  if (!llvm::is_sorted(getMembers()) || llvm::adjacent_find(getMembers()) != getMembers().end())
    return emitOpError() << "expected ascending members, found " << shapeText(getMembers());
  size_t sources = std::max<size_t>(members, 1) * getExperts();
  if (getOffsets().size() != sources)
    return emitOpError() << "has " << getOffsets().size() << " offsets, expected " << sources << " (members times experts)";
  if (getFiles().size() != 1 && getFiles().size() != sources)
    return emitOpError() << "has " << getFiles().size() << " files, expected 1 or " << sources << " (members times experts)";
  if (llvm::any_of(getOffsets(), [](int64_t offset) { return offset < 0; }))
    return emitOpError() << "has a negative offset";
  return success();
}

LogicalResult StackOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape() || type.getRank() == 0)
    return emitOpError() << "expected a static shape of rank 1 or more, found " << type;
  if (getParts().empty())
    return emitOpError() << "expected at least one part";
  if (getRows().size() != getParts().size())
    return emitOpError() << "has " << getRows().size() << " row counts, but " << getParts().size() << " parts";
  for (int64_t rows : getRows())
    if (rows < 1)
      return emitOpError() << "expected at least one row of each part, found " << rows;
  if (!getShardAxis() != !getShardOf())
    return emitOpError() << "a shard needs both an axis and what is divided";
  int64_t group = getInterleave();
  if (group == 0)
    return success();
  if (group < 0)
    return emitOpError() << "expected interleave of 0 or more, found " << group;
  if (getParts().size() < 2 || !llvm::all_equal(getRows()))
    return emitOpError() << "interleave needs two or more parts of equal rows, found rows " << shapeText(getRows());
  if (getRows()[0] % group)
    return emitOpError() << "interleave " << group << " does not divide the " << getRows()[0] << " rows of a part";
  return success();
}

// Does a row of the stack fit a row of its part: equal, or a share of its columns?
static bool fitsRow(ArrayRef<int64_t> want, ArrayRef<int64_t> have, bool columns) {
  if (!columns || want.size() != 1 || have.size() != 1)
    return want == have;
  return want.front() <= have.front();
}

LogicalResult StackOp::verifySymbolUses(SymbolTableCollection &symbols) {
  const bool columns = getShardOf() == coll::ShardOf::columns, someExperts = getShardOf() == coll::ShardOf::members;
  auto type = cast<RankedTensorType>(getType());
  TensorOp first;
  for (auto [attr, used] : llvm::zip(getParts(), getRows())) {
    auto name = cast<FlatSymbolRefAttr>(attr);
    auto part = symbols.lookupNearestSymbolFrom<TensorOp>(*this, name);
    if (!part)
      return emitOpError() << "part " << name << " is not an nn.tensor";
    if (!first)
      first = part;
    auto partType = cast<RankedTensorType>(part.getType());
    if (part.getMembers() != first.getMembers())
      return emitOpError() << "part " << name << " has members " << shapeText(part.getMembers()) << ", but @"
                           << first.getSymName() << " has " << shapeText(first.getMembers());
    if (partType.getElementType() != type.getElementType())
      return emitOpError() << "part " << name << " holds " << partType.getElementType() << ", but the stack holds "
                           << type.getElementType();
    bool experts = part.hasExperts();
    auto wrongExperts = [&] {
      return type.getRank() < 2 ||
             (someExperts ? part.getExperts() < type.getDimSize(0) : part.getExperts() != type.getDimSize(0));
    };
    if (someExperts && !experts)
      return emitOpError() << "shares out the members of part " << name << ", which has no experts";
    if (experts != first.hasExperts() || (experts && wrongExperts()))
      return emitOpError() << "part " << name << " has " << part.getExperts() << " experts, but the stack's type is " << type;
    ArrayRef<int64_t> partShape = partType.getShape().drop_front(experts), shape = type.getShape().drop_front(experts);
    RowShape want = rowShape(shape, shape.size() == 1);
    if (partShape.empty())
      return emitOpError() << "part " << name << " is a scalar, but the stack's type is " << type;
    RowShape have = rowShape(partShape, shape.size() == 1);
    if (!fitsRow(want.row, have.row, columns))
      return emitOpError() << "part " << name << " has rows of shape " << shapeText(have.row)
                           << ", but the stack has rows of shape " << shapeText(want.row);
    if (used > have.count)
      return emitOpError() << "uses " << used << " rows of part " << name << ", which has " << have.count;
  }
  ArrayRef<int64_t> shape = type.getShape().drop_front(first.hasExperts());
  int64_t total = llvm::sum_of(getRows());
  if (total != shape.front())
    return emitOpError() << "the parts give " << total << " rows, but the type has " << shape.front();
  return success();
}

LogicalResult MergedStackOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 2 || !type.hasStaticShape())
    return emitOpError() << "expected rows of one shape, [N, K], found " << type;
  if (getStacks().size() < 2)
    return emitOpError() << "expected two stacks or more, found " << getStacks().size();
  ArrayRef<int64_t> members;
  int64_t rows = 0;
  // A stack lies in one place.
  llvm::SmallDenseMap<Attribute, MergedStackOp> placed;
  for (auto other : (*this)->getParentRegion()->getOps<MergedStackOp>())
    if (other != *this && other->isBeforeInBlock(*this))
      for (Attribute name : other.getStacks())
        placed.try_emplace(name, other);
  for (auto name : getStacks().getAsRange<FlatSymbolRefAttr>()) {
    if (auto [known, first] = placed.try_emplace(name, *this); !first)
      return emitOpError() << name << " is already part of @" << known->second.getSymName();
    auto stack = symbols.lookupNearestSymbolFrom<StackOp>(*this, name);
    if (!stack)
      return emitOpError() << name << " is not an nn.stack";
    auto own = cast<RankedTensorType>(stack.getType());
    if (own.getRank() != 2 || own.getDimSize(1) != type.getDimSize(1) || own.getElementType() != type.getElementType())
      return emitOpError() << name << " has type " << own << ", whose rows are not those of " << type;
    if (stack.getInterleave())
      return emitOpError() << name << " interleaves its parts";
    auto part = symbols.lookupNearestSymbolFrom<TensorOp>(stack, cast<FlatSymbolRefAttr>(stack.getParts()[0]));
    if (!part)
      return success(); // the stack's own verifier reports it
    if (part.hasExperts())
      return emitOpError() << name << " has experts";
    if (rows && part.getMembers() != members)
      return emitOpError() << name << " has members " << shapeText(part.getMembers()) << ", but the first stack has "
                           << shapeText(members);
    members = part.getMembers();
    rows += own.getDimSize(0);
  }
  if (rows != type.getDimSize(0))
    return emitOpError() << "the stacks give " << rows << " rows, but the type has " << type.getDimSize(0);
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto stack = symbols.lookupNearestSymbolFrom<StackOp>(*this, getStackAttr());
  Type type = stack ? stack.getType() : Type();
  if (auto merged = symbols.lookupNearestSymbolFrom<MergedStackOp>(*this, getStackAttr())) {
    type = merged.getType();
    stack = symbols.lookupNearestSymbolFrom<StackOp>(merged, cast<FlatSymbolRefAttr>(merged.getStacks()[0]));
    if (!stack)
      return success(); // the merged stack's own verifier reports it
  }
  if (!stack)
    return emitOpError() << getStackAttr() << " is not an nn.stack";
  if (type != getResult().getType())
    return emitOpError() << "has type " << getResult().getType() << ", but " << getStackAttr() << " has type " << type;
  auto part = symbols.lookupNearestSymbolFrom<TensorOp>(stack, cast<FlatSymbolRefAttr>(stack.getParts()[0]));
  if (!part)
    return success(); // the stack's own verifier reports it
  if (part.getMembers().empty() && getLayer())
    return emitOpError() << getStackAttr() << " has no members, so it takes no layer";
  if (!part.getMembers().empty() && !getLayer())
    return emitOpError() << getStackAttr() << " has one member a layer: expected `[%layer]`";
  return success();
}
