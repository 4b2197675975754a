#include "compiler/Export/PlanFile.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "runtime/plan/plan_file.h"
#include "runtime/schema/plan_generated.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace k31;
namespace ir = k31::planir;

namespace {

StringRef text(const flatbuffers::String *string) { return string ? StringRef(string->data(), string->size()) : StringRef(); }

template <class To, class From> SmallVector<To> list(const flatbuffers::Vector<From> *values) {
  SmallVector<To> out;
  if (values)
    for (From value : *values)
      out.push_back(static_cast<To>(value));
  return out;
}

class Importer {
public:
  Importer(const plan::Plan &source, Location loc) : source(source), loc(loc), builder(loc.getContext()) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    if (failed(facts()) || failed(memory()) || failed(code()) || failed(notes()))
      return nullptr;
    for (const plan::Entry *entry : *source.entries()) {
      builder.setInsertionPointToEnd(module->getBody());
      if (failed(add(*entry)))
        return nullptr;
    }
    return module;
  }

private:
  const plan::Plan &source;
  Location loc;
  OpBuilder builder;
  SmallVector<StringRef> arenaNames;
  SmallVector<FlatSymbolRefAttr> imageSymbols, kernelSymbols, noteSymbols;
  llvm::StringSet<> symbols;

  LogicalResult refuse(const Twine &what) { return emitError(loc) << what << "; the plan is damaged, compile it again"; }

  template <class Enum> LogicalResult inRange(Enum value, Enum last, const char *what) {
    return static_cast<int>(value) <= static_cast<int>(last) ? success()
                                                             : refuse(Twine(what) + " " + Twine(int(value)) + " is unknown");
  }
  LogicalResult newSymbol(StringRef name) {
    return symbols.insert(name).second && !name.empty() ? success() : refuse("the name '" + name + "' is empty or used twice");
  }

  LogicalResult facts() {
    const plan::Key &key = *source.key();
    SmallVector<NamedAttribute> options;
    llvm::StringSet<> seen;
    for (const plan::Option *option : *key.options()) {
      if (text(option->name()).empty() || !seen.insert(text(option->name())).second)
        return refuse("the option '" + text(option->name()) + "' is there twice or has no name");
      options.emplace_back(builder.getStringAttr(text(option->name())), builder.getStringAttr(text(option->value())));
    }
    ir::KeyOp::create(builder, loc, text(key.compiler()), text(key.target()), builder.getDictionaryAttr(options),
                      text(key.checkpoint()), text(key.digest()));
    const plan::Mesh &mesh = *source.mesh();
    ir::MeshOp::create(builder, loc, mesh.tp(), mesh.dp(), mesh.ep(), mesh.pp(), mesh.node());
    const plan::Model &model = *source.model();
    if (failed(inRange(model.activations(), plan::DType::MAX, "the type of activations")))
      return failure();
    ir::ModelOp::create(builder, loc, text(model.family()), model.layers(), model.layer_begin(), model.layer_end(),
                        model.hidden(), model.vocab(), model.max_context(), model.max_batch(), list<int32_t>(model.eos()),
                        plan::EnumNameDType(model.activations()), source.reserve());
    for (const plan::CheckpointFile *file : *source.files())
      ir::FileOp::create(builder, loc, text(file->name()), file->bytes());
    return success();
  }

  LogicalResult memory() {
    for (const plan::Arena *arena : *source.arenas()) {
      if (failed(newSymbol(text(arena->name()))) || failed(inRange(arena->kind(), plan::ArenaKind::MAX, "the kind of an arena")))
        return failure();
      arenaNames.push_back(text(arena->name()));
      ir::ArenaOp::create(builder, loc, text(arena->name()), static_cast<ir::ArenaKind>(arena->kind()), arena->bytes(),
                          arena->alignment());
    }
    for (const plan::WeightStack *stack : *source.weights())
      if (failed(add(*stack)))
        return failure();
    const plan::StateGroup &state = *source.state();
    ir::StateOp::create(builder, loc, state.block_tokens(), state.blocks(), state.slots());
    for (const plan::StateMember *member : *state.members()) {
      if (failed(arenaExists(member->arena())) ||
          failed(inRange(member->kind(), plan::StateKind::MAX, "the kind of a state member")))
        return failure();
      ir::StateMemberOp::create(builder, loc, static_cast<ir::StateKind>(member->kind()), member->layer(),
                                arenaNames[member->arena()], member->offset(), member->unit_bytes(), member->units(),
                                member->stage(), member->codes());
    }
    return success();
  }

  LogicalResult arenaExists(uint32_t number) {
    return number < arenaNames.size() ? success()
                                      : refuse("arena " + Twine(number) + " of " + Twine(arenaNames.size()) + " is named");
  }

  LogicalResult add(const plan::WeightStack &stack) {
    if (failed(arenaExists(stack.arena())))
      return failure();
    ir::MeshAxisAttr axis;
    ir::ShardOfAttr of;
    if (const plan::Shard *shard = stack.shard()) {
      if (failed(inRange(shard->axis(), plan::MeshAxis::MAX, "a mesh axis")) ||
          failed(inRange(shard->of(), plan::ShardOf::MAX, "a kind of shard")))
        return failure();
      axis = ir::MeshAxisAttr::get(builder.getContext(), static_cast<ir::MeshAxis>(shard->axis()));
      of = ir::ShardOfAttr::get(builder.getContext(), static_cast<ir::ShardOf>(shard->of()));
    }
    const plan::Layout &layout = *stack.layout();
    ir::WeightsOp::create(builder, loc, text(stack.pattern()), list<int32_t>(stack.members()), text(stack.dtype()),
                          list<int64_t>(stack.shape()), list<int32_t>(stack.files()), list<int64_t>(stack.offsets()),
                          arenaNames[stack.arena()], stack.dest(), stack.stride(), layout.row_bytes(), layout.row_begin(),
                          layout.row_count(), layout.byte_begin(), layout.byte_count(), layout.dest_row_bytes(), layout.group(),
                          layout.group_stride(), layout.group_begin(), axis, of, stack.stage());
    return success();
  }

  // Null for plans before 1.1, which do not say.
  FailureOr<ArrayAttr> argTypes(const plan::Kernel &kernel) {
    if (!kernel.operands())
      return ArrayAttr();
    SmallVector<Type> types;
    for (const plan::Operand *operand : *kernel.operands()) {
      if (failed(inRange(operand->dtype(), plan::DType::MAX, "the type of an argument")))
        return failure();
      if (operand->columns() > uint64_t(INT64_MAX))
        return refuse("an argument has rows of " + Twine(operand->columns()) + " elements");
      SmallVector<int64_t> shape{ShapedType::kDynamic};
      if (operand->columns() != 1)
        shape.push_back(static_cast<int64_t>(operand->columns()));
      types.push_back(RankedTensorType::get(shape, typeOf(operand->dtype())));
    }
    return builder.getTypeArrayAttr(types);
  }

  LogicalResult code() {
    for (const plan::Image *image : *source.images()) {
      SmallVector<StringRef> features;
      for (const flatbuffers::String *feature : *image->features())
        features.push_back(text(feature));
      std::string symbol = ("image." + Twine(imageSymbols.size())).str();
      if (failed(newSymbol(symbol)))
        return failure();
      StringRef bytes(reinterpret_cast<const char *>(image->code()->data()), image->code()->size());
      auto op = ir::ImageOp::create(builder, loc, symbol, text(image->target()), builder.getStrArrayAttr(features), bytes);
      imageSymbols.push_back(FlatSymbolRefAttr::get(op));
    }
    for (const plan::Kernel *kernel : *source.kernels()) {
      SmallVector<Attribute> images;
      for (uint32_t image : *kernel->images()) {
        if (image >= imageSymbols.size())
          return refuse("image " + Twine(image) + " of " + Twine(imageSymbols.size()) + " is named");
        images.push_back(imageSymbols[image]);
      }
      std::string symbol = ("kernel." + Twine(kernelSymbols.size())).str();
      if (failed(newSymbol(symbol)))
        return failure();
      FailureOr<ArrayAttr> types = argTypes(*kernel);
      if (failed(types))
        return failure();
      auto op =
          ir::KernelOp::create(builder, loc, symbol, text(kernel->name()), text(kernel->symbol()), builder.getArrayAttr(images),
                               text(kernel->config()), DictionaryAttr(), *types, kernel->starts_early(), /*bodiesCount=*/0);
      kernelSymbols.push_back(FlatSymbolRefAttr::get(op));
    }
    return success();
  }

  LogicalResult notes() {
    for (uint32_t i = 0; source.notes() && i < source.notes()->size(); ++i) {
      const plan::Note &note = *source.notes()->Get(i);
      SmallVector<StringRef> choices;
      SmallVector<int64_t> times;
      for (uint32_t c = 0; note.candidates() && c < note.candidates()->size(); ++c) {
        choices.push_back(text(note.candidates()->Get(c)->choice()));
        times.push_back(static_cast<int64_t>(note.candidates()->Get(c)->nanoseconds()));
      }
      std::string symbol = ("note." + Twine(i)).str();
      if (failed(newSymbol(symbol)))
        return failure();
      auto op = ir::NoteOp::create(builder, loc, symbol, text(note.about()), text(note.choice()), text(note.reason()),
                                   builder.getStrArrayAttr(choices), builder.getDenseI64ArrayAttr(times));
      noteSymbols.push_back(FlatSymbolRefAttr::get(op));
    }
    return success();
  }

  LogicalResult giveNotes(Operation *op, const flatbuffers::Vector<uint32_t> *numbers) {
    SmallVector<Attribute> symbols;
    for (uint32_t number : list<uint32_t>(numbers)) {
      if (number >= noteSymbols.size())
        return refuse("note " + Twine(number) + " of " + Twine(noteSymbols.size()) + " is named");
      symbols.push_back(noteSymbols[number]);
    }
    if (!symbols.empty())
      op->setAttr(ir::kNotes, builder.getArrayAttr(symbols));
    return success();
  }

  // One slice a use: a plan no longer says which uses of a range are the same buffer, and check-plan takes a value for one.
  FailureOr<Value> slice(uint32_t arena, uint64_t offset, ArrayRef<int64_t> shape, Type element) {
    if (failed(arenaExists(arena)))
      return failure();
    uint64_t bytes = 1;
    for (int64_t extent : shape)
      if (extent < 0 || __builtin_mul_overflow(bytes, uint64_t(extent), &bytes) || bytes > uint64_t(INT64_MAX) / 64)
        return refuse("a buffer has more bytes than 64 bits count");
    auto type = RankedTensorType::get(shape, element);
    return ir::SliceOp::create(builder, loc, type, arenaNames[arena], offset).getResult();
  }
  FailureOr<Value> slice(const plan::Slice &slice_) {
    return slice(slice_.arena(), slice_.offset(), {static_cast<int64_t>(slice_.bytes())}, builder.getIntegerType(8, false));
  }

  Type typeOf(plan::DType type) {
    switch (type) {
    case plan::DType::f32:
      return builder.getF32Type();
    case plan::DType::bf16:
      return builder.getBF16Type();
    case plan::DType::i32:
      return builder.getI32Type();
    default:
      return builder.getIntegerType(8, false);
    }
  }

  template <class Bind> LogicalResult add(const plan::Binding &binding) {
    if (failed(inRange(binding.dtype(), plan::DType::MAX, "the type of an input or output")))
      return failure();
    FailureOr<Value> buffer = slice(binding.arena(), binding.offset(), list<int64_t>(binding.shape()), typeOf(binding.dtype()));
    if (succeeded(buffer))
      Bind::create(builder, loc, text(binding.name()), *buffer);
    return buffer;
  }

  StringAttr label(const flatbuffers::String *string) { return string ? builder.getStringAttr(text(string)) : StringAttr(); }
  IntegerAttr number(uint32_t value) { return builder.getI32IntegerAttr(static_cast<int32_t>(value)); }

  LogicalResult add(const plan::Launch &launch) {
    if (launch.kernel() >= kernelSymbols.size())
      return refuse("kernel " + Twine(launch.kernel()) + " of " + Twine(kernelSymbols.size()) + " is launched");
    SmallVector<Value> args;
    SmallVector<int32_t> access;
    for (const plan::Slice *arg : *launch.args()) {
      if (failed(inRange(arg->access(), plan::Access::MAX, "an access")))
        return failure();
      FailureOr<Value> buffer = slice(*arg);
      if (failed(buffer))
        return failure();
      args.push_back(*buffer);
      access.push_back(static_cast<int32_t>(arg->access()));
    }
    ArrayAttr maps;
    if (launch.maps()) {
      SmallVector<Attribute> list;
      for (const plan::TensorMap *map : *launch.maps()) {
        auto field = [&](StringRef name, uint64_t value) {
          return builder.getNamedAttr(name, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
        };
        list.push_back(builder.getDictionaryAttr(
            {field("arg", map->arg()), field("columns", map->columns()), field("rows", map->rows()),
             field("row_bytes", map->row_bytes()), field("box_columns", map->box_columns()), field("box_rows", map->box_rows()),
             builder.getNamedAttr("dtype", builder.getStringAttr(plan::EnumNameDType(map->dtype())))}));
      }
      maps = builder.getArrayAttr(list);
    }
    int32_t grid[] = {int32_t(launch.grid_x()), int32_t(launch.grid_y()), int32_t(launch.grid_z())};
    auto op = ir::LaunchOp::create(builder, loc, kernelSymbols[launch.kernel()], number(launch.stream()),
                                   builder.getDenseI32ArrayAttr(grid), number(launch.block_x()), number(launch.smem()), args,
                                   builder.getDenseI32ArrayAttr(access), label(launch.label()), maps, number(launch.maps_at()));
    return giveNotes(op, launch.notes());
  }

  LogicalResult add(const plan::Collective &c) {
    if (failed(inRange(c.op(), plan::CollectiveOp::MAX, "a collective")) ||
        failed(inRange(c.axis(), plan::MeshAxis::MAX, "a mesh axis")) ||
        failed(inRange(c.transport(), plan::Transport::MAX, "a transport")) ||
        failed(inRange(c.dtype(), plan::DType::MAX, "an element type")))
      return failure();
    FailureOr<Value> from = slice(*c.source()), to = slice(*c.dest());
    if (failed(from) || failed(to))
      return failure();
    Value live;
    if (c.live()) {
      FailureOr<Value> counts = slice(*c.live());
      if (failed(counts))
        return failure();
      live = *counts;
    }
    Value area;
    FlatSymbolRefAttr kernel;
    DenseI32ArrayAttr grid;
    SmallVector<Value> more;
    SmallVector<int32_t> access;
    if (const plan::Launch *launch = c.launch()) {
      if (launch->kernel() >= kernelSymbols.size())
        return refuse("kernel " + Twine(launch->kernel()) + " of " + Twine(kernelSymbols.size()) + " does a collective");
      const uint32_t first = c.live() ? 3 : 2; // behind source, live and destination
      if (launch->args()->size() <= first)
        return refuse("a kernel with " + Twine(launch->args()->size()) + " arguments does a collective");
      for (uint32_t i = first; i + 1 < launch->args()->size(); ++i) {
        const plan::Slice &arg = *launch->args()->Get(i);
        FailureOr<Value> buffer = slice(arg);
        if (failed(buffer) || failed(inRange(arg.access(), plan::Access::MAX, "an access")))
          return failure();
        more.push_back(*buffer);
        access.push_back(static_cast<int32_t>(arg.access()));
      }
      FailureOr<Value> last = slice(*launch->args()->Get(launch->args()->size() - 1));
      if (failed(last))
        return failure();
      area = *last;
      kernel = kernelSymbols[launch->kernel()];
      grid = builder.getDenseI32ArrayAttr({int32_t(launch->grid_x()), int32_t(launch->grid_y()), int32_t(launch->grid_z())});
    }
    auto op =
        ir::CollectiveOp::create(builder, loc, static_cast<ir::CollectiveKind>(c.op()), static_cast<ir::MeshAxis>(c.axis()),
                                 static_cast<ir::Transport>(c.transport()), builder.getStringAttr(plan::EnumNameDType(c.dtype())),
                                 c.count(), *from, *to, live, area, c.live_unit(), c.peer(), c.stream(), label(c.label()), kernel,
                                 grid, c.launch() ? c.launch()->block_x() : 1, c.launch() ? c.launch()->smem() : 0, more, access);
    return giveNotes(op, c.notes());
  }

  LogicalResult add(const plan::Copy &copy) {
    FailureOr<Value> from = slice(*copy.source()), to = slice(*copy.dest());
    if (failed(from) || failed(to))
      return failure();
    ir::CopyOp::create(builder, loc, *from, *to, copy.stream(), label(copy.label()));
    return success();
  }

  LogicalResult add(const plan::Entry &entry) {
    if (failed(newSymbol(text(entry.name()))) || failed(inRange(entry.kind(), plan::EntryKind::MAX, "the kind of an entry")))
      return failure();
    auto op = ir::EntryOp::create(builder, loc, text(entry.name()), static_cast<ir::EntryKind>(entry.kind()), entry.rows(),
                                  entry.segments(), entry.logit_rows(), entry.stage(), entry.streams(), entry.events());
    builder.setInsertionPointToEnd(&op.getBody().emplaceBlock());
    if (failed(giveNotes(op, entry.notes())))
      return failure();
    for (const plan::Binding *input : *entry.inputs())
      if (failed(add<ir::InputOp>(*input)))
        return failure();
    for (const plan::Binding *output : *entry.outputs())
      if (failed(add<ir::OutputOp>(*output)))
        return failure();
    for (uint32_t i = 0; i < entry.commands()->size(); ++i)
      if (failed(command(entry, i)))
        return failure();
    return success();
  }

  LogicalResult command(const plan::Entry &entry, uint32_t i) {
    const void *table = entry.commands()->Get(i);
    switch (auto kind = entry.commands_type()->GetEnum<plan::Command>(i)) {
    case plan::Command::Launch:
      return add(*static_cast<const plan::Launch *>(table));
    case plan::Command::Collective:
      return add(*static_cast<const plan::Collective *>(table));
    case plan::Command::Copy:
      return add(*static_cast<const plan::Copy *>(table));
    case plan::Command::Record: {
      auto &record = *static_cast<const plan::Record *>(table);
      ir::RecordOp::create(builder, loc, record.event(), record.stream());
      return success();
    }
    case plan::Command::Wait: {
      auto &wait = *static_cast<const plan::Wait *>(table);
      ir::WaitOp::create(builder, loc, wait.event(), wait.stream());
      return success();
    }
    default:
      return refuse("a command of kind " + Twine(int(kind)) + " is unknown");
    }
  }
};

} // namespace

OwningOpRef<ModuleOp> k31::importPlan(std::span<const std::byte> flatbuffer, StringRef name, MLIRContext *context) {
  context->loadDialect<ir::PlanDialect>();
  Location loc = FileLineColLoc::get(context, name, 0, 0);
  auto source = check_plan(flatbuffer); // every index and range, as the runtime does it
  if (!source) {
    emitError(loc) << source.error().message;
    return nullptr;
  }
  return Importer(**source, loc).run();
}
