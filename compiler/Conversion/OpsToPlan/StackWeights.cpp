// nn.stack to plan.weights: its parts share each member's rows.
#include "compiler/Conversion/OpsToPlan/StackWeights.h"
#include "compiler/Sizes.h"
#include "dialects/Support/Pattern.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

namespace {

// As in the safetensors header; f4 codes and f8 scales are stored as bytes there.
StringRef checkpointType(Type element) {
  if (element.isBF16())
    return "BF16";
  if (element.isF32())
    return "F32";
  if (isa<Float4E2M1FNType, Float8E8M0FNUType>(element) || element.isInteger(8))
    return "U8";
  return "";
}

// How rows of a part land among those of the stack. Of each source row the first usedBytes are this rank's, or that of coordinate
// 0.
struct Rows {
  int64_t rowBytes, usedBytes, count, group, groupStride, groupBegin;
};

class StackBuilder {
public:
  StackBuilder(nn::StackOp stack, SymbolTable &symbols, OpBuilder &builder, int64_t stage, const std::set<int64_t> &layers,
               MembersAt at)
      : stack(stack), symbols(symbols), builder(builder), stage(stage), layers(layers), at(at) {}

  FailureOr<Place> build() {
    place.type = cast<RankedTensorType>(stack.getType());
    place.stride = at.stride;
    place.begin = at.begin + at.rowsBefore * (byteSize(place.type) / place.type.getDimSize(0));
    SmallVector<nn::TensorOp> parts;
    for (Attribute part : stack.getParts()) {
      auto tensor = symbols.lookup<nn::TensorOp>(cast<FlatSymbolRefAttr>(part).getValue());
      if (!tensor)
        return stack.emitOpError("names the part ") << part << ", which is no nn.tensor of the module";
      parts.push_back(tensor);
    }
    for (auto [i, member] : llvm::enumerate(parts.front().getMembers()))
      if (layers.empty() || layers.count(member))
        place.members.push_back(member), chosen.push_back(i);
    for (auto [i, part] : llvm::enumerate(parts)) {
      if (part.getMembers() != parts.front().getMembers())
        return stack.emitOpError("joins tensors with different members: @")
               << part.getSymName() << " and @" << parts.front().getSymName();
      if (failed(buildPart(part, i)))
        return failure();
    }
    return place;
  }

private:
  nn::StackOp stack;
  SymbolTable &symbols;
  OpBuilder &builder;
  int64_t stage;
  const std::set<int64_t> &layers;
  const MembersAt at;
  Place place;
  SmallVector<int64_t> chosen; // numbers of the members among those of the tensors

  planir::MeshAxisAttr shardAxis() {
    if (std::optional<coll::Axis> axis = stack.getShardAxis())
      return planir::MeshAxisAttr::get(stack.getContext(), static_cast<planir::MeshAxis>(*axis));
    return {};
  }
  planir::ShardOfAttr shardOf() {
    if (std::optional<coll::ShardOf> of = stack.getShardOf())
      return planir::ShardOfAttr::get(stack.getContext(), static_cast<planir::ShardOf>(*of));
    return {};
  }

  FailureOr<Rows> rowsOf(nn::TensorOp part, ArrayRef<int64_t> shape, bool flat, size_t index) {
    auto type = cast<RankedTensorType>(part.getType());
    int64_t bits = elementBits(type.getElementType());
    if (!flat)
      for (int64_t extent : shape.drop_front())
        bits *= extent;
    Rows rows;
    rows.rowBytes = rows.usedBytes = bits / 8;
    if (stack.getShardOf() == coll::ShardOf::columns)
      rows.usedBytes = rows.rowBytes / shape.back() * place.type.getShape().back();
    if (bits % 8 != 0)
      return part.emitOpError("has rows of ") << bits << " bits, which is no whole number of bytes";
    rows.count = stack.getRows()[index];
    int64_t available = flat ? llvm::product_of(shape) : shape.front();
    if (rows.count > available)
      return stack.emitOpError("uses ") << rows.count << " rows of @" << part.getSymName() << ", which has " << available;
    if (int64_t interleave = stack.getInterleave()) {
      rows.group = interleave;
      rows.groupStride = interleave * stack.getParts().size();
      rows.groupBegin = interleave * index;
      if (rows.count % interleave != 0 || rows.count != stack.getRows()[0])
        return stack.emitOpError("interleaves groups of ")
               << interleave << " rows, but part " << index << " has " << rows.count << " rows";
    } else {
      rows.group = rows.groupStride = rows.count;
      rows.groupBegin = at.rowsBefore;
      for (int64_t before : stack.getRows().take_front(index))
        rows.groupBegin += before;
    }
    return rows;
  }

  LogicalResult buildPart(nn::TensorOp part, size_t index) {
    auto type = cast<RankedTensorType>(part.getType());
    Type element = type.getElementType();
    StringRef dtype = checkpointType(element);
    if (dtype.empty() || element != place.type.getElementType())
      return stack.emitOpError("of ") << place.type.getElementType() << " takes the part @" << part.getSymName() << " of "
                                      << element << "; parts have the stack's type, one of bf16, f32, f4E2M1FN, f8E8M0FNU";
    bool experts = part.hasExperts(), numbered = !part.getMembers().empty();

    ArrayRef<int64_t> shape = type.getShape().drop_front(experts);
    ArrayRef<int64_t> stackShape = place.type.getShape().drop_front(experts);
    // With a shard of members the list of experts is whole, and each rank keeps its share of it.
    const bool shared = stack.getShardOf() == coll::ShardOf::members;
    int64_t expertCount = experts ? type.getShape().front() : 1, held = experts ? place.type.getShape().front() : 1;
    if (shape.empty() || stackShape.empty() || (shared ? held > expertCount : held != expertCount))
      return stack.emitOpError("of type ") << place.type << " does not fit its part @" << part.getSymName() << " of type "
                                           << type;
    // A vector's rows are its elements, whatever ones the checkpoint's shape has.
    FailureOr<Rows> rows = rowsOf(part, shape, stackShape.size() == 1, index);
    if (failed(rows))
      return failure();
    int64_t expertBytes = byteSize(place.type) / held;
    if (expertBytes != rows->usedBytes * stackShape.front())
      return stack.emitOpError("has ") << expertBytes / stackShape.front() << " bytes a row, its part @" << part.getSymName()
                                       << " has " << rows->usedBytes;

    SmallVector<int64_t> fileShape(shape);
    if (element.isInteger(8) == false && elementBits(element) == 4)
      fileShape.back() /= 2; // two codes a byte

    int64_t members = numbered ? part.getMembers().size() : 1;
    int64_t sources = members * expertCount;
    ArrayRef<int32_t> files = part.getFiles();
    ArrayRef<int64_t> offsets = part.getOffsets();
    if (static_cast<int64_t>(offsets.size()) != sources || (files.size() != 1 && static_cast<int64_t>(files.size()) != sources))
      return part.emitOpError("stands for ")
             << sources << " tensors, but has " << files.size() << " files and " << offsets.size() << " offsets";

    // `from`: the numbers of the source tensors.
    auto declare = [&](StringRef pattern, ArrayRef<int32_t> numbers, ArrayRef<int64_t> from, int64_t dest, int64_t stride) {
      auto fileOf = [&](int64_t source) { return files[files.size() == 1 ? 0 : source]; };
      planir::WeightsOp::create(builder, part.getLoc(), pattern, numbers, dtype, fileShape, llvm::map_to_vector(from, fileOf),
                                llvm::map_to_vector(from, [&](int64_t source) { return offsets[source]; }), "weights", dest,
                                stride, rows->rowBytes, 0, rows->count, 0, rows->usedBytes, rows->usedBytes, rows->group,
                                rows->groupStride, rows->groupBegin, shardAxis(), shardOf(), stage);
    };
    if (!experts) {
      declare(part.getPattern(), SmallVector<int32_t>(place.members.begin(), place.members.end()),
              numbered ? ArrayRef(chosen) : ArrayRef<int64_t>{0}, at.begin, place.stride);
      return success();
    }
    SmallVector<int32_t> numbers = llvm::to_vector(llvm::seq<int32_t>(0, expertCount));
    SmallVector<int64_t> which = numbered ? chosen : SmallVector<int64_t>{0};
    for (auto [i, member] : llvm::enumerate(which)) {
      std::string pattern = numbered ? fillPlaceholder(part.getPattern(), part.getMembers()[member]) : part.getPattern().str();
      declare(pattern, numbers, llvm::to_vector(llvm::seq<int64_t>(member * expertCount, (member + 1) * expertCount)),
              place.begin + int64_t(i) * place.stride, expertBytes);
    }
    return success();
  }
};

} // namespace

FailureOr<Place> to_plan::buildStack(nn::StackOp stack, SymbolTable &symbols, OpBuilder &builder, int64_t stage,
                                     const std::set<int64_t> &layers, MembersAt at) {
  return StackBuilder(stack, symbols, builder, stage, layers, at).build();
}
