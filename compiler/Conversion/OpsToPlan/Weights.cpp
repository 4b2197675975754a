// nn.stack to plan.weights: a stack's members follow each other in the weights arena, its parts share each member's rows. Those
// of a merged stack share its members' rows in the same way.
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "compiler/Sizes.h"
#include "dialects/Support/Pattern.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

std::optional<int64_t> Place::offsetOf(std::optional<int64_t> layer) const {
  if (members.empty())
    return begin;
  if (!layer)
    return std::nullopt;
  auto found = llvm::find(members, *layer);
  if (found == members.end())
    return std::nullopt;
  return begin + stride * (found - members.begin());
}

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
  // `layers`: the members that a stage needs, all when empty.
  StackBuilder(nn::StackOp stack, SymbolTable &symbols, OpBuilder &builder, int64_t stage, std::set<int64_t> layers)
      : stack(stack), symbols(symbols), builder(builder), stage(stage), layers(std::move(layers)) {}

  // Places the stack in members that begin at `begin`, `stride` apart, behind `rows` rows of others, and declares its parts.
  FailureOr<Place> build(int64_t begin, int64_t stride, int64_t rows) {
    place.type = cast<RankedTensorType>(stack.getType());
    place.stride = stride, run = begin, rowsBefore = rows;
    place.begin = rows ? begin + rows * byteSize(place.type) / place.type.getDimSize(0) : begin;
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
  std::set<int64_t> layers;
  Place place;
  int64_t run = 0, rowsBefore = 0; // where its first member's rows are counted from, and how many others come first
  SmallVector<int64_t> chosen;     // numbers of the members among those of the tensors

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
      rows.groupBegin = rowsBefore;
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
              numbered ? ArrayRef(chosen) : ArrayRef<int64_t>{0}, run, place.stride);
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

// Stacks whose members lie one behind the other: one, or those of a merged stack.
struct Run {
  SmallVector<nn::StackOp> stacks;
  nn::MergedStackOp merged;

  // Layers by what names the run; nothing when no entry does.
  std::optional<std::set<int64_t>> usedBy(const Usage &usage) {
    std::optional<std::set<int64_t>> layers;
    auto add = [&](StringRef name) {
      if (auto used = usage.find(name); used != usage.end()) {
        layers = layers.value_or(std::set<int64_t>());
        layers->insert(used->second.begin(), used->second.end());
      }
    };
    for (nn::StackOp stack : stacks)
      add(stack.getSymName());
    if (merged)
      add(merged.getSymName());
    return layers;
  }
  int64_t memberBytes() {
    int64_t bytes = 0;
    for (nn::StackOp stack : stacks)
      bytes += byteSize(cast<RankedTensorType>(stack.getType()));
    return bytes;
  }
};

SmallVector<Run> runsOf(ModuleOp module, SymbolTable &symbols) {
  DenseMap<Operation *, nn::MergedStackOp> mergedOf;
  for (auto merged : module.getOps<nn::MergedStackOp>())
    for (auto name : merged.getStacks().getAsRange<FlatSymbolRefAttr>())
      mergedOf[symbols.lookup(name.getValue())] = merged;
  SmallVector<Run> runs;
  DenseMap<Operation *, size_t> known; // by the merged stack
  for (auto stack : module.getOps<nn::StackOp>()) {
    nn::MergedStackOp merged = mergedOf.lookup(stack);
    if (!merged) {
      runs.push_back({{stack}, merged});
    } else if (known.try_emplace(merged, runs.size()).second) {
      Run &run = runs.emplace_back();
      run.merged = merged;
      for (auto name : merged.getStacks().getAsRange<FlatSymbolRefAttr>())
        run.stacks.push_back(symbols.lookup<nn::StackOp>(name.getValue()));
    }
  }
  return runs;
}

} // namespace

FailureOr<int64_t> to_plan::buildWeights(ModuleOp module, OpBuilder &builder, ArrayRef<Usage> stages,
                                         SmallVectorImpl<Places> &places) {
  SymbolTable symbols(module);
  SmallVector<Run> runs = runsOf(module, symbols);
  int64_t bytes = 0;
  for (auto [stage, usage] : llvm::enumerate(stages)) {
    Places &own = places.emplace_back();
    int64_t end = 0;
    for (Run &run : runs) {
      const std::optional<std::set<int64_t>> used = run.usedBy(usage);
      if (!used)
        continue;
      const bool all = stages.size() == 1; // what the model has, whatever the entries name
      const int64_t stride = aligned(run.memberBytes());
      int64_t rows = 0;
      Place first;
      for (nn::StackOp stack : run.stacks) {
        FailureOr<Place> place =
            StackBuilder(stack, symbols, builder, stage, all ? std::set<int64_t>() : *used).build(end, stride, rows);
        if (failed(place))
          return failure();
        if (!rows)
          first = *place;
        rows += place->type.getDimSize(0);
        own[stack.getSymName()] = std::move(*place);
      }
      if (run.merged) {
        Place &whole = own[run.merged.getSymName()] = first;
        whole.type = cast<RankedTensorType>(run.merged.getType());
      }
      end += stride * std::max<int64_t>(first.members.size(), 1);
    }
    bytes = std::max(bytes, end);
  }
  return bytes;
}
