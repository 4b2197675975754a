// One entry function to one plan.entry: values become buffers, ops launches, calls the body's launches of that layer.
#include "compiler/Conversion/OpsToPlan/EntryPorts.h"
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "compiler/Sizes.h"
#include "dialects/Coll/Coll.h"
#include "dialects/Support/Notes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace k31;
using namespace k31::to_plan;

namespace {

class EntryBuilder {
public:
  EntryBuilder(func::FuncOp function, OpBuilder &builder, Context &context)
      : function(function), outer(builder), builder(builder), context(context) {}

  LogicalResult build() {
    if (failed(buildEntryOp()))
      return failure();
    builder.setInsertionPointToEnd(&entry.getBody().front());
    SmallVector<Known> arguments;
    if (failed(buildInputs(function, builder, arguments)))
      return failure();
    SmallVector<Value> destinations;
    llvm::MapVector<StringAttr, Value> outputs;
    if (failed(buildOutputs(function, builder, destinations, outputs)) ||
        failed(walk(function, arguments, destinations, std::nullopt)))
      return failure();
    for (auto [name, output] : outputs)
      planir::OutputOp::create(builder, function.getLoc(), name.getValue(), output);
    return success();
  }

private:
  func::FuncOp function;
  OpBuilder &outer;  // at the end of the module
  OpBuilder builder; // inside the entry
  Context &context;
  planir::EntryOp entry;
  DenseMap<Attribute, Value> slices; // weights and caches by {arena, offset, type}: one op for all their uses

  Places &weights() { return context.weights[entry.getStage()]; }
  Places &pools() { return context.pools[entry.getStage()]; }

  LogicalResult buildEntryOp() {
    auto facts = function->getAttrOfType<DictionaryAttr>("k31.entry");
    auto kind = facts ? facts.getAs<StringAttr>("kind") : StringAttr();
    std::optional<planir::EntryKind> kindValue = kind ? planir::symbolizeEntryKind(kind.getValue()) : std::nullopt;
    if (!kindValue)
      return function.emitOpError("has k31.entry without kind = \"decode\" or \"prefill\"");
    int32_t capacity[3];
    constexpr StringRef names[3] = {"rows", "segments", "logit_rows"};
    for (auto [name, value] : llvm::zip(names, capacity)) {
      auto number = facts.getAs<IntegerAttr>(name);
      if (!number)
        return function.emitOpError("has k31.entry without the number '") << name << "'";
      value = number.getInt();
    }
    entry = planir::EntryOp::create(outer, function.getLoc(), function.getSymName(), *kindValue, capacity[0], capacity[1],
                                    capacity[2], stageOf(function), 1, 0);
    entry.getBody().emplaceBlock();
    return context.notes->give(function, entry);
  }

  Value slice(Location loc, StringRef arena, int64_t offset, RankedTensorType type) {
    Attribute key = builder.getArrayAttr({builder.getStringAttr(arena), builder.getI64IntegerAttr(offset), TypeAttr::get(type)});
    Value &known = slices[key];
    if (!known)
      known = planir::SliceOp::create(builder, loc, type, arena, offset);
    return known;
  }

  // Writes out the ops of a function. destinations[i]: the buffer that result i must be in, or null. On return it holds the
  // results.
  LogicalResult walk(func::FuncOp body, ArrayRef<Known> arguments, SmallVectorImpl<Value> &destinations,
                     std::optional<int64_t> layer) {
    if (body.isExternal())
      return body.emitOpError("has no body to write out");
    DenseMap<Value, Known> known;
    for (auto [argument, value] : llvm::zip(body.getArguments(), arguments))
      known[argument] = value;
    Operation *end = body.front().getTerminator();
    DenseMap<Value, Value> wanted;
    for (auto [value, destination] : llvm::zip(end->getOperands(), destinations))
      if (destination)
        wanted.try_emplace(value, destination);

    for (Operation &op : body.front().without_terminator()) {
      Block &commands = entry.getBody().front();
      Operation *before = commands.empty() ? nullptr : &commands.back();
      if (failed(visit(op, known, wanted, layer)) || (!isa<func::CallOp>(op) && failed(giveNotes(op, before))))
        return failure();
    }

    for (auto [value, destination] : llvm::zip(end->getOperands(), destinations)) {
      Known &result = known[value];
      if (result.buffers.size() != 1)
        return end->emitOpError("returns something that is no tensor");
      if (result.pitch) // the caller knows nothing of the distance between its rows
        return end->emitOpError("returns a view of columns; store it first, as by an nn.map");
      if (destination && destination != result.buffers[0]) // returned twice, or an argument
        planir::CopyOp::create(builder, end->getLoc(), result.buffers[0], destination, 0, StringAttr());
      else
        destination = result.buffers[0];
    }
    return success();
  }

  // To the commands behind `before`, which were made of the op.
  LogicalResult giveNotes(Operation &op, Operation *before) {
    if (!op.hasAttr(kNotes))
      return success();
    Block &commands = entry.getBody().front();
    Block::iterator first = before ? std::next(Block::iterator(before)) : commands.begin();
    for (Operation &made : llvm::make_range(first, commands.end()))
      if (isa<planir::LaunchOp, planir::CollectiveOp>(made) && failed(context.notes->give(&op, &made)))
        return failure();
    return success();
  }

  LogicalResult visit(Operation &op, DenseMap<Value, Known> &known, const DenseMap<Value, Value> &wanted,
                      std::optional<int64_t> layer) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto number = dyn_cast<IntegerAttr>(constant.getValue()); number && constant.getType().isIndex()) {
        known[constant].number = number.getInt();
        return success();
      }
      return op.emitOpError("is no layer number; constants of other types belong into regions");
    }
    if (auto weight = dyn_cast<nn::WeightOp>(op)) {
      auto place = weights().find(weight.getStack());
      return pick(op, place, weights().end(), weight.getLayer() ? known[weight.getLayer()].number : std::nullopt, "weights",
                  known);
    }
    if (auto cache = dyn_cast<attn::CacheOp>(op)) {
      auto place = pools().find(cache.getPool());
      return pick(op, place, pools().end(), known[cache.getLayer()].number, cache.getType().isPaged() ? "cache" : "state", known);
    }
    if (auto columns = dyn_cast<nn::ColumnsOp>(op)) {
      const Known source = known[columns.getSource()];
      auto type = cast<RankedTensorType>(columns.getSource().getType());
      // A vector is one row.
      int64_t rows = type.getRank() == 1 ? 1 : type.getDimSize(0), bits = elementBits(type.getElementType());
      int64_t pitch = source.pitch ? source.pitch : type.getShape().back();
      int64_t width = columns.getEnd() - columns.getBegin();
      int64_t bytes = ((rows - 1) * pitch + width) * bits / 8; // the last row ends with the view
      known[columns] = Known(view(builder, op.getLoc(), source.buffers.front(), columns.getBegin() * bits / 8, bytes), pitch);
      return success();
    }
    if (auto batch = dyn_cast<attn::BatchOfOp>(op)) {
      Known &result = known[batch];
      for (Value part : {batch.getCounts(), batch.getSegments(), batch.getRowSegment()})
        result.buffers.push_back(known[part].buffers.front());
      result.buffers.push_back(known[batch.getTable()].buffers.back()); // counts, segments, row_segment, block_table
      return success();
    }
    if (auto call = dyn_cast<func::CallOp>(op))
      return visitCall(call, known, wanted);
    auto kernel = op.getAttrOfType<DictionaryAttr>("k31.kernel");
    if (op.hasAttr("transport") || isa<coll::SumRowOp>(op) || (!kernel && isa_and_nonnull<coll::CollDialect>(op.getDialect())))
      return visitCollective(op, kernel, known, wanted, layer);
    if (kernel)
      return launch(op, kernel, known, wanted, layer);
    return op.emitOpError(
        "has no attribute k31.kernel, so nothing can be launched for it; run select-kernels first, or attach a KernelOp "
        "model in codegen/ when it has none");
  }

  // What moves bytes between ranks: one command, at the capacity of its operand. `kernel`: of one that goes by peer, else null.
  LogicalResult visitCollective(Operation &op, DictionaryAttr kernel, DenseMap<Value, Known> &known,
                                const DenseMap<Value, Value> &wanted, std::optional<int64_t> layer) {
    auto fused = dyn_cast<coll::SumRowOp>(op);
    std::optional<planir::CollectiveKind> kind = !fused ? planir::symbolizeCollectiveKind(op.getName().stripDialect())
                                                 : fused.getScatter() ? planir::CollectiveKind::reduce_scatter
                                                                      : planir::CollectiveKind::all_reduce;
    auto axis = op.getAttrOfType<coll::AxisAttr>("axis");
    // Of dispatch and combine the second operand counts what of the pieces is live.
    const bool pieces = isa<coll::DispatchOp, coll::CombineOp>(op);
    if (!kind || !axis || (fused && !kernel) || (!fused && (op.getNumOperands() > (pieces ? 2 : 1) || op.getNumResults() > 1)))
      return op.emitOpError("moves rows between ranks in a way that no command of a plan has");
    // A send has no destination here and a recv no source: the one buffer stands for both.
    Value source, dest;
    RankedTensorType type;
    if (op.getNumOperands()) {
      const Known operand = known[op.getOperand(0)];
      if (operand.buffers.size() != 1 || operand.pitch)
        return op.emitOpError("needs rows that follow each other; store them first, as by an nn.map");
      source = dest = operand.buffers[0], type = cast<RankedTensorType>(op.getOperand(0).getType());
    }
    if (op.getNumResults()) {
      dest = wanted.lookup(op.getResult(0));
      if (!dest)
        dest = alloc(builder, op.getLoc(), "activations", op.getResult(0).getType());
      known[op.getResult(0)] = dest;
      if (!source)
        source = dest, type = cast<RankedTensorType>(op.getResult(0).getType());
    }
    Value live;
    if (pieces) {
      const Known counts = known[op.getOperand(1)];
      if (counts.buffers.size() != 1)
        return op.emitOpError("has no buffer with the counts of its pieces");
      live = counts.buffers[0];
    }
    auto peer = op.getAttrOfType<IntegerAttr>("peer"), unit = op.getAttrOfType<IntegerAttr>("unit");
    Type element = type.getElementType();
    StringRef dtype = element.isF32() ? "f32" : element.isBF16() ? "bf16" : element.isInteger(32) ? "i32" : "u8";
    auto command = planir::CollectiveOp::create(
        builder, op.getLoc(), *kind, static_cast<planir::MeshAxis>(axis.getValue()), planir::Transport::library, dtype,
        type.getNumElements(), source, dest, live, /*area=*/Value(), unit ? unit.getInt() : 0, peer ? peer.getInt() : 0, 0,
        builder.getStringAttr(labelOf(op, layer, op.getName().stripDialect())), FlatSymbolRefAttr(), DenseI32ArrayAttr(), 1, 0,
        ValueRange(), ArrayRef<int32_t>());
    if (fused && failed(addRow(fused, command, known, wanted)))
      return failure();
    return kernel ? goByPeer(op, kernel, command) : success();
  }

  // The live rows, operands and results of the row op on the sum.
  LogicalResult addRow(coll::SumRowOp op, planir::CollectiveOp command, DenseMap<Value, Known> &known,
                       const DenseMap<Value, Value> &wanted) {
    Arguments more;
    builder.setInsertionPoint(command);
    for (OpOperand &operand : op->getOpOperands().drop_front())
      if (failed(addOperand(*op, operand, known, more)))
        return failure();
    for (Value result : op.getResults())
      addResult(*op, result, known, wanted, more);
    builder.setInsertionPointAfter(command);
    command.getMoreMutable().assign(more.buffers);
    command.setAccess(more.access);
    return success();
  }

  LogicalResult goByPeer(Operation &op, DictionaryAttr kernel, planir::CollectiveOp command) {
    FailureOr<Areas::Area> area = context.areas.of(&op, kernel);
    if (failed(area))
      return failure();
    auto bytes = RankedTensorType::get({area->bytes}, builder.getIntegerType(8, false));
    SmallVector<Type> types;
    if (isa<coll::SumRowOp>(op)) {
      types = {op.getOperand(0).getType(), op.getResult(0).getType()};
      llvm::append_range(types, llvm::drop_begin(op.getOperandTypes()));
      llvm::append_range(types, llvm::drop_begin(op.getResultTypes()));
    } else {
      llvm::append_range(types, op.getOperandTypes());
      types.push_back(op.getResult(0).getType());
    }
    types.push_back(bytes);
    builder.setInsertionPoint(command);
    command.getAreaMutable().assign(slice(op.getLoc(), "shared", area->begin, bytes));
    builder.setInsertionPointAfter(command);
    command.setTransport(planir::Transport::peer);
    command.setKernelAttr(context.kernels->of(&op, kernel, types));
    auto grid = kernel.getAs<DenseI32ArrayAttr>("grid"); // CUDA; a host's one task
    command.setGridAttr(grid ? grid : builder.getDenseI32ArrayAttr({1, 1, 1}));
    if (auto block = kernel.getAs<IntegerAttr>("block"))
      command.setBlock(static_cast<uint32_t>(block.getInt()));
    if (auto smem = kernel.getAs<IntegerAttr>("smem"))
      command.setSmem(static_cast<uint32_t>(smem.getInt()));
    return success();
  }

  static std::string labelOf(Operation &op, std::optional<int64_t> layer, StringRef otherwise) {
    StringRef place = nameOf(op.getLoc());
    if (place.empty())
      place = otherwise;
    return layer ? ("layers." + Twine(*layer) + "." + place).str() : place.str();
  }

  LogicalResult pick(Operation &op, Places::iterator place, Places::iterator none, std::optional<int64_t> layer, StringRef arena,
                     DenseMap<Value, Known> &known) {
    if (place == none)
      return op.emitOpError("names a stack or pool that the module does not have");
    std::optional<int64_t> offset = place->second.offsetOf(layer);
    if (!offset) {
      InFlightDiagnostic diagnostic = op.emitOpError("asks @") << place->first() << " for ";
      return layer ? diagnostic << "layer " << *layer << ", which is none of its members" : diagnostic << "an unknown layer";
    }
    known[op.getResult(0)] = slice(op.getLoc(), arena, *offset, place->second.type);
    return success();
  }

  LogicalResult visitCall(func::CallOp call, DenseMap<Value, Known> &known, const DenseMap<Value, Value> &wanted) {
    func::FuncOp callee = context.functions.lookup(call.getCallee());
    if (!callee)
      return call.emitOpError("calls an unknown function @") << call.getCallee();
    SmallVector<Known> arguments;
    std::optional<int64_t> layer;
    for (Value operand : call.getOperands()) {
      arguments.push_back(known[operand]);
      if (!layer)
        layer = arguments.back().number;
    }
    SmallVector<Value> results;
    for (Value result : call.getResults())
      results.push_back(wanted.lookup(result));
    if (failed(walk(callee, arguments, results, layer)))
      return failure();
    for (auto [result, buffer] : llvm::zip(call.getResults(), results))
      known[result] = buffer;
    return success();
  }

  static StringRef nameOf(Location loc) {
    StringRef name;
    loc->walk([&](Location inner) {
      if (auto named = dyn_cast<NameLoc>(inner); named && name.empty())
        name = named.getName();
      return name.empty() ? WalkResult::advance() : WalkResult::interrupt();
    });
    return name;
  }

  // What the op does to an operand: caches declare it, everything else is read.
  static planir::Access accessOf(Operation &op, OpOperand &operand) {
    if (!isa<attn::CacheType>(operand.get().getType()))
      return planir::Access::read;
    SmallVector<MemoryEffects::EffectInstance> effects;
    if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
      interface.getEffectsOnValue(operand.get(), effects);
    bool reads = false, writes = false;
    for (const MemoryEffects::EffectInstance &effect : effects) {
      reads |= isa<MemoryEffects::Read>(effect.getEffect());
      writes |= isa<MemoryEffects::Write>(effect.getEffect());
    }
    return writes ? reads ? planir::Access::update : planir::Access::write : planir::Access::read;
  }

  struct Arguments {
    SmallVector<Value> buffers;
    SmallVector<int32_t> access;
    SmallVector<Type> types; // of the tensors: views are bytes

    void add(Value buffer, planir::Access how, Type type) {
      buffers.push_back(buffer);
      access.push_back(static_cast<int32_t>(how));
      types.push_back(type);
    }
  };
  static LogicalResult addOperand(Operation &op, OpOperand &operand, DenseMap<Value, Known> &known, Arguments &args) {
    const Known source = known[operand.get()];
    if (source.buffers.empty())
      return op.emitOpError("operand ") << operand.getOperandNumber() << " has no buffer";
    for (Value buffer : source.buffers)
      args.add(buffer, accessOf(op, operand),
               isa<RankedTensorType>(operand.get().getType()) ? operand.get().getType() : buffer.getType());
    return success();
  }
  void addResult(Operation &op, Value result, DenseMap<Value, Known> &known, const DenseMap<Value, Value> &wanted,
                 Arguments &args) {
    Value buffer = wanted.lookup(result);
    if (!buffer)
      buffer = alloc(builder, op.getLoc(), "activations", result.getType());
    known[result] = buffer;
    args.add(buffer, planir::Access::write, result.getType());
  }

  LogicalResult launch(Operation &op, DictionaryAttr kernel, DenseMap<Value, Known> &known, const DenseMap<Value, Value> &wanted,
                       std::optional<int64_t> layer) {
    auto name = kernel.getAs<StringAttr>("name");
    auto tasks = kernel.getAs<IntegerAttr>("tasks"), workspace = kernel.getAs<IntegerAttr>("workspace");
    auto grid = kernel.getAs<DenseI32ArrayAttr>("grid");
    if (!name || (!tasks && !grid) || !workspace)
      return op.emitOpError("has k31.kernel without name, workspace, or one of tasks and grid");
    auto number = [&](StringRef field, int64_t otherwise) {
      auto value = kernel.getAs<IntegerAttr>(field);
      return builder.getI32IntegerAttr(static_cast<int32_t>(value ? value.getInt() : otherwise));
    };
    if (!grid) // the host counts tasks
      grid = builder.getDenseI32ArrayAttr({static_cast<int32_t>(tasks.getInt()), 1, 1});
    Arguments args;
    for (OpOperand &operand : op.getOpOperands())
      if (failed(addOperand(op, operand, known, args)))
        return failure();
    for (Value result : op.getResults())
      addResult(op, result, known, wanted, args);
    if (int64_t bytes = workspace.getInt()) {
      auto type = RankedTensorType::get({bytes}, builder.getIntegerType(8, false));
      args.add(alloc(builder, op.getLoc(), "workspace", type), planir::Access::write, type);
    }

    planir::LaunchOp::create(builder, op.getLoc(), context.kernels->of(&op, kernel, args.types), builder.getI32IntegerAttr(0),
                             grid, number("block", 1), number("smem", 0), args.buffers, builder.getDenseI32ArrayAttr(args.access),
                             builder.getStringAttr(labelOf(op, layer, name.getValue())), kernel.getAs<ArrayAttr>("maps"),
                             number("maps_at", 0));
    return success();
  }
};

} // namespace

LogicalResult to_plan::buildEntry(func::FuncOp function, OpBuilder &builder, Context &context) {
  return EntryBuilder(function, builder, context).build();
}
