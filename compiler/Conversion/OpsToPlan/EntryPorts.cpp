#include "compiler/Conversion/OpsToPlan/EntryPorts.h"
#include "compiler/Sizes.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Plan/Plan.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

namespace {

// In the order of the entry contract (runtime/schema/README.md).
constexpr StringRef kInputs[] = {"tokens",   "counts", "segments", "row_segment", "block_table", "logit_rows",
                                 "sampling", "mask",   "bias",     "hidden",      "bank",        "coordinates"};
constexpr int64_t kCounts = 4, kSegmentWords = 6, kCoordinates = 8; // i32 words of `counts`, one segment, `coordinates`

// The bank of residual blocks is [K, T, H]: as many parts as arguments or results have its name.
RankedTensorType bankOf(RankedTensorType part, int64_t parts) {
  SmallVector<int64_t> shape{parts};
  llvm::append_range(shape, part.getShape());
  return part.clone(shape);
}

} // namespace

Value to_plan::alloc(OpBuilder &builder, Location loc, StringRef arena, Type type) {
  return planir::AllocOp::create(builder, loc, type, arena);
}

Value to_plan::view(OpBuilder &builder, Location loc, Value source, int64_t offset, int64_t bytes) {
  return planir::ViewOp::create(builder, loc, RankedTensorType::get({bytes}, builder.getIntegerType(8, false)), source, offset);
}

LogicalResult to_plan::buildOutputs(func::FuncOp function, OpBuilder &builder, SmallVectorImpl<Value> &destinations,
                                    llvm::MapVector<StringAttr, Value> &outputs) {
  auto nameOf = [&](unsigned i) { return function.getResultAttrOfType<StringAttr>(i, "k31.output"); };
  int64_t parts = 0;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (!nameOf(i))
      return function.emitOpError("result ") << i << " has no k31.output, the name of an output of the entry contract";
    parts += nameOf(i) == "bank";
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    Type type = function.getResultTypes()[i];
    if (nameOf(i) == "bank")
      type = bankOf(cast<RankedTensorType>(type), parts);
    Value &buffer = outputs[nameOf(i)];
    if (!buffer)
      buffer = alloc(builder, function.getLoc(), "io", type);
    auto offset = function.getResultAttrOfType<IntegerAttr>(i, "k31.offset");
    destinations.push_back(
        offset ? view(builder, function.getLoc(), buffer, offset.getInt(), byteSize(function.getResultTypes()[i])) : buffer);
  }
  return success();
}

LogicalResult to_plan::buildInputs(func::FuncOp function, OpBuilder &builder, SmallVectorImpl<Known> &arguments) {
  llvm::StringMap<RankedTensorType> types;
  Type i32 = builder.getI32Type();
  int64_t bankParts = 0;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    bankParts += function.getArgAttrOfType<StringAttr>(i, "k31.input") == "bank";
  auto declare = [&](StringRef name, RankedTensorType type) -> LogicalResult {
    auto [at, isNew] = types.try_emplace(name, type);
    if (!isNew && at->second != type)
      return function.emitOpError("has the input '") << name << "' as " << at->second << " and as " << type;
    return success();
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, "k31.input");
    Type type = function.getArgumentTypes()[i];
    LogicalResult declared = success();
    if (!name)
      return function.emitOpError("argument ") << i << " has no k31.input, the name of an input of the entry contract";
    if (auto batch = dyn_cast<attn::BatchType>(type))
      declared = success(succeeded(declare("counts", RankedTensorType::get({kCounts}, i32))) &&
                         succeeded(declare("segments", RankedTensorType::get({batch.getSegments(), kSegmentWords}, i32))) &&
                         succeeded(declare("row_segment", RankedTensorType::get({batch.getRows()}, i32))) &&
                         succeeded(declare("block_table", RankedTensorType::get({batch.getSegments(), batch.getBlocks()}, i32))));
    else if (name == "counts")
      declared = declare("counts", RankedTensorType::get({kCounts}, i32));
    else if (name == "coordinates")
      declared = declare("coordinates", RankedTensorType::get({kCoordinates}, i32));
    else if (name == "bank" && isa<RankedTensorType>(type))
      declared = declare("bank", bankOf(cast<RankedTensorType>(type), bankParts));
    else if (llvm::is_contained(kInputs, name.getValue()) && isa<RankedTensorType>(type))
      declared = declare(name, cast<RankedTensorType>(type));
    else
      return function.emitOpError("argument ")
             << i << " is the input '" << name.getValue() << "' of type " << type << ", which the entry contract does not have";
    if (failed(declared))
      return failure();
  }
  llvm::StringMap<Value> inputs;
  for (StringRef name : kInputs)
    if (auto type = types.lookup(name)) {
      inputs[name] = alloc(builder, function.getLoc(), "io", type);
      planir::InputOp::create(builder, function.getLoc(), name, inputs[name]);
    }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    StringRef name = function.getArgAttrOfType<StringAttr>(i, "k31.input").getValue();
    Known &argument = arguments.emplace_back();
    Type type = function.getArgumentTypes()[i];
    if (isa<attn::BatchType>(type)) {
      for (StringRef part : {"counts", "segments", "row_segment", "block_table"})
        argument.buffers.push_back(inputs[part]);
      continue;
    }
    Value buffer = inputs[name];
    auto offset = function.getArgAttrOfType<IntegerAttr>(i, "k31.offset");
    if (buffer.getType() != type)
      buffer = view(builder, function.getLoc(), buffer, offset ? offset.getInt() : 0, byteSize(type));
    argument.buffers.push_back(buffer);
  }
  return success();
}
