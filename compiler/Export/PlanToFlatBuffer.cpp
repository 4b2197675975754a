#include "compiler/Export/PlanFile.h"
#include "compiler/Sizes.h"
#include "dialects/Plan/Plan.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/schema/plan_generated.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace k31;
namespace ir = k31::planir;
namespace fb = flatbuffers;

namespace {

std::optional<plan::DType> dtypeOf(Type element) {
  if (element.isF32())
    return plan::DType::f32;
  if (element.isBF16())
    return plan::DType::bf16;
  if (element.isInteger(8))
    return plan::DType::u8;
  if (element.isInteger(32))
    return plan::DType::i32;
  return std::nullopt;
}

std::optional<plan::DType> dtypeOf(StringRef name) {
  for (plan::DType type : plan::EnumValuesDType())
    if (name == plan::EnumNameDType(type))
      return type;
  return std::nullopt;
}

class Exporter {
public:
  explicit Exporter(ModuleOp module) : module(module) {}

  FailureOr<std::string> run() {
    number();
    for (Operation &op : *module.getBody())
      if (!isa<ir::KeyOp, ir::MeshOp, ir::ModelOp, ir::FileOp, ir::ArenaOp, ir::WeightsOp, ir::StateOp, ir::StateMemberOp,
               ir::ImageOp, ir::KernelOp, ir::NoteOp, ir::EntryOp>(op))
        return op.emitOpError("has no table in a plan file; run convert-ops-to-plan");
    if (failed(one<ir::KeyOp>()) || failed(one<ir::MeshOp>()) || failed(one<ir::ModelOp>()) || failed(one<ir::StateOp>()))
      return failure();
    // Always in the order of the schema, so that the bytes do not depend on the order of the module's ops.
    if (failed(addAll<ir::KeyOp>()) || failed(addAll<ir::MeshOp>()) || failed(addAll<ir::ModelOp>()) ||
        failed(addAll<ir::ArenaOp>()) || failed(addAll<ir::FileOp>()) || failed(addAll<ir::WeightsOp>()) ||
        failed(addAll<ir::StateOp>()) || failed(addAll<ir::StateMemberOp>()) || failed(addAll<ir::ImageOp>()) ||
        failed(addAll<ir::KernelOp>()) || failed(addAll<ir::NoteOp>()) || failed(addAll<ir::EntryOp>()))
      return failure();
    auto stateGroup = plan::CreateStateGroup(builder, state.getBlockTokens(), state.getBlocks(), state.getSlots(),
                                             builder.CreateVector(members));
    auto root =
        plan::CreatePlan(builder, kPlanMajor, kPlanMinor, key, mesh, model, builder.CreateVector(arenas),
                         builder.CreateVector(files), builder.CreateVector(weights), stateGroup, builder.CreateVector(images),
                         builder.CreateVector(kernels), builder.CreateVector(entries), reserve, builder.CreateVector(notes));
    builder.Finish(root, plan::PlanIdentifier());
    return std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
  }

private:
  template <class Op> LogicalResult one() {
    auto ops = module.getOps<Op>();
    int64_t found = std::distance(ops.begin(), ops.end());
    if (found == 1)
      return success();
    return module.emitError("the plan has ") << found << " " << Op::getOperationName() << ", expected one";
  }

  ModuleOp module;
  fb::FlatBufferBuilder builder;
  llvm::StringMap<uint32_t> arenaNumber, imageNumber, kernelNumber, noteNumber;

  fb::Offset<plan::Key> key;
  fb::Offset<plan::Mesh> mesh;
  fb::Offset<plan::Model> model;
  uint64_t reserve = 0;
  ir::StateOp state;
  std::vector<fb::Offset<plan::Arena>> arenas;
  std::vector<fb::Offset<plan::CheckpointFile>> files;
  std::vector<fb::Offset<plan::WeightStack>> weights;
  std::vector<fb::Offset<plan::StateMember>> members;
  std::vector<fb::Offset<plan::Image>> images;
  std::vector<fb::Offset<plan::Kernel>> kernels;
  std::vector<fb::Offset<plan::Note>> notes;
  std::vector<fb::Offset<plan::Entry>> entries;
  std::map<const void *, fb::Offset<fb::Vector<uint32_t>>> noteLists; // by attribute: layers share them
  // Equal slices share one table: most launches of an entry name the same inputs.
  std::map<std::tuple<uint32_t, uint64_t, uint64_t, int>, fb::Offset<plan::Slice>> slices;

  fb::Offset<fb::String> string(StringRef text) { return builder.CreateSharedString(text.data(), text.size()); }
  fb::Offset<fb::String> label(std::optional<StringRef> text) { return text ? string(*text) : fb::Offset<fb::String>(); }
  template <class To, class From> fb::Offset<fb::Vector<To>> numbers(ArrayRef<From> values) {
    return builder.CreateVector(std::vector<To>(values.begin(), values.end()));
  }

  // Indices by symbol, in order of appearance.
  void number() {
    for (Operation &op : *module.getBody())
      if (auto arena = dyn_cast<ir::ArenaOp>(op))
        arenaNumber.try_emplace(arena.getSymName(), arenaNumber.size());
      else if (auto image = dyn_cast<ir::ImageOp>(op))
        imageNumber.try_emplace(image.getSymName(), imageNumber.size());
      else if (auto kernel = dyn_cast<ir::KernelOp>(op))
        kernelNumber.try_emplace(kernel.getSymName(), kernelNumber.size());
      else if (auto note = dyn_cast<ir::NoteOp>(op))
        noteNumber.try_emplace(note.getSymName(), noteNumber.size());
  }

  static LogicalResult find(Operation *op, const llvm::StringMap<uint32_t> &numbers, StringRef symbol, uint32_t &number) {
    auto found = numbers.find(symbol);
    if (found == numbers.end())
      return op->emitOpError("names @") << symbol << ", which the plan does not have";
    number = found->second;
    return success();
  }

  template <class Op> LogicalResult addAll() {
    for (Op op : module.getOps<Op>())
      if (failed(add(op)))
        return failure();
    return success();
  }

  LogicalResult add(ir::KeyOp op) {
    std::vector<fb::Offset<plan::Option>> options;
    for (NamedAttribute option : op.getOptions()) {
      auto value = dyn_cast<StringAttr>(option.getValue());
      if (!value)
        return op.emitOpError("has the option ") << option.getName() << " that is no text";
      options.push_back(plan::CreateOption(builder, string(option.getName()), string(value)));
    }
    key = plan::CreateKey(builder, string(op.getCompiler()), string(op.getTarget()), builder.CreateVector(options),
                          string(op.getCheckpoint()), string(op.getDigest()));
    return success();
  }

  LogicalResult add(ir::MeshOp op) {
    mesh = plan::CreateMesh(builder, op.getTp(), op.getDp(), op.getEp(), op.getPp(), op.getNode());
    return success();
  }

  LogicalResult add(ir::ModelOp op) {
    std::optional<plan::DType> activations = dtypeOf(op.getActivations());
    if (!activations)
      return op.emitOpError("has activations of type '") << op.getActivations() << "', expected bf16 or f32";
    auto eos = numbers<int32_t>(op.getEos());
    model = plan::CreateModel(builder, string(op.getFamily()), op.getLayers(), op.getLayerBegin(), op.getLayerEnd(),
                              op.getHidden(), op.getVocab(), op.getMaxContext(), op.getMaxBatch(), eos, *activations);
    reserve = op.getReserve();
    return success();
  }

  LogicalResult add(ir::ArenaOp op) {
    arenas.push_back(plan::CreateArena(builder, string(op.getSymName()), static_cast<plan::ArenaKind>(op.getKind()),
                                       op.getBytes(), op.getAlignment()));
    return success();
  }

  LogicalResult add(ir::FileOp op) {
    files.push_back(plan::CreateCheckpointFile(builder, string(op.getFile()), op.getBytes()));
    return success();
  }

  LogicalResult add(ir::WeightsOp op) {
    uint32_t arena;
    if (failed(find(op, arenaNumber, op.getArena(), arena)))
      return failure();
    auto pattern = string(op.getPattern()), dtype = string(op.getDtype());
    auto layout =
        plan::CreateLayout(builder, op.getRowBytes(), op.getRowBegin(), op.getRowCount(), op.getByteBegin(), op.getByteCount(),
                           op.getDestRowBytes(), op.getGroup(), op.getGroupStride(), op.getGroupBegin());
    fb::Offset<plan::Shard> shard;
    if (op.getShardAxis() && op.getShardOf())
      shard = plan::CreateShard(builder, static_cast<plan::MeshAxis>(*op.getShardAxis()),
                                static_cast<plan::ShardOf>(*op.getShardOf()));
    auto memberNumbers = numbers<uint32_t>(op.getMembers());
    auto shape = numbers<uint64_t>(op.getShape()), offsets = numbers<uint64_t>(op.getOffsets());
    auto fileNumbers = numbers<uint32_t>(op.getFiles());
    weights.push_back(plan::CreateWeightStack(builder, pattern, memberNumbers, dtype, shape, fileNumbers, offsets, arena,
                                              op.getDest(), op.getStride(), layout, shard, op.getStage()));
    return success();
  }

  LogicalResult add(ir::StateOp op) {
    if (state)
      return op.emitOpError("is the second plan.state");
    state = op;
    return success();
  }

  LogicalResult add(ir::StateMemberOp op) {
    uint32_t arena;
    if (failed(find(op, arenaNumber, op.getArena(), arena)))
      return failure();
    members.push_back(plan::CreateStateMember(builder, static_cast<plan::StateKind>(op.getKind()), op.getLayer(), arena,
                                              op.getOffset(), op.getUnitBytes(), op.getUnits(), op.getStage(), op.getCodes()));
    return success();
  }

  LogicalResult add(ir::ImageOp op) {
    std::vector<fb::Offset<fb::String>> features;
    for (Attribute feature : op.getFeatures())
      features.push_back(string(cast<StringAttr>(feature)));
    auto target = string(op.getTarget());
    auto featureVector = builder.CreateVector(features);
    builder.ForceVectorAlignment(op.getCode().size(), 1, 16);
    auto code = builder.CreateVector(reinterpret_cast<const uint8_t *>(op.getCode().data()), op.getCode().size());
    images.push_back(plan::CreateImage(builder, target, featureVector, code));
    return success();
  }

  LogicalResult add(ir::KernelOp op) {
    std::vector<uint32_t> variants;
    for (Attribute image : op.getImages())
      if (failed(find(op, imageNumber, cast<FlatSymbolRefAttr>(image).getValue(), variants.emplace_back())))
        return failure();
    if (op.getSpec() || op.getSymbol().empty())
      return op.emitOpError("is not compiled; run compile-kernels");
    auto name = string(op.getName()), symbol = string(op.getSymbol()), config = string(op.getConfig());
    fb::Offset<fb::Vector<fb::Offset<plan::Operand>>> operands;
    if (std::optional<ArrayAttr> types = op.getArgTypes()) {
      std::vector<fb::Offset<plan::Operand>> list;
      for (Type type : types->getAsValueRange<TypeAttr>()) {
        auto rows = dyn_cast<RankedTensorType>(type);
        std::optional<plan::DType> dtype = rows ? dtypeOf(rows.getElementType()) : std::nullopt;
        if (!dtype || rows.getRank() < 1 || rows.getRank() > 2)
          return op.emitOpError("has an argument of ") << type << ", expected tensor<? x columns x f32, bf16, ui8 or i32>";
        list.push_back(plan::CreateOperand(builder, *dtype, rows.getRank() == 2 ? rows.getDimSize(1) : 1));
      }
      operands = builder.CreateVector(list);
    }
    kernels.push_back(
        plan::CreateKernel(builder, name, symbol, builder.CreateVector(variants), config, operands, op.getStartsEarly()));
    return success();
  }

  LogicalResult add(ir::NoteOp op) {
    std::vector<fb::Offset<plan::Candidate>> candidates;
    for (auto [choice, time] : llvm::zip(op.getCandidates(), op.getNanoseconds()))
      candidates.push_back(plan::CreateCandidate(builder, string(cast<StringAttr>(choice)), static_cast<uint64_t>(time)));
    auto about = string(op.getAbout()), choice = string(op.getChoice()), reason = string(op.getReason());
    fb::Offset<fb::Vector<fb::Offset<plan::Candidate>>> compared;
    if (!candidates.empty())
      compared = builder.CreateVector(candidates);
    notes.push_back(plan::CreateNote(builder, about, choice, reason, compared));
    return success();
  }

  // Null when the command or entry has none.
  FailureOr<fb::Offset<fb::Vector<uint32_t>>> notesOf(Operation *op) {
    auto symbols = op->getAttrOfType<ArrayAttr>(ir::kNotes);
    if (!symbols || symbols.empty())
      return fb::Offset<fb::Vector<uint32_t>>();
    auto [at, isNew] = noteLists.try_emplace(symbols.getAsOpaquePointer());
    if (!isNew)
      return at->second;
    std::vector<uint32_t> list;
    for (auto symbol : symbols.getAsRange<FlatSymbolRefAttr>())
      if (failed(find(op, noteNumber, symbol.getValue(), list.emplace_back())))
        return failure();
    return at->second = builder.CreateVector(list);
  }

  FailureOr<fb::Offset<plan::Slice>> slice(Operation *user, Value buffer, ir::Access access) {
    auto op = buffer.getDefiningOp<ir::SliceOp>();
    if (!op)
      return user->emitOpError("uses a buffer without an offset; run assign-memory");
    uint32_t arena;
    if (failed(find(op, arenaNumber, op.getArena(), arena)))
      return failure();
    uint64_t bytes = byteSize(op.getType());
    auto [at, isNew] = slices.try_emplace({arena, op.getOffset(), bytes, static_cast<int>(access)});
    if (isNew)
      at->second = plan::CreateSlice(builder, arena, op.getOffset(), bytes, static_cast<plan::Access>(access));
    return at->second;
  }

  template <class Bind> LogicalResult bind(Bind op, std::vector<fb::Offset<plan::Binding>> &bindings) {
    auto buffer = op.getBuffer().template getDefiningOp<ir::SliceOp>();
    if (!buffer)
      return op.emitOpError("is of a buffer without an offset; run assign-memory");
    uint32_t arena;
    if (failed(find(op, arenaNumber, buffer.getArena(), arena)))
      return failure();
    auto type = cast<RankedTensorType>(buffer.getType());
    std::optional<plan::DType> dtype = dtypeOf(type.getElementType());
    if (!dtype)
      return op.emitOpError("is of ") << type.getElementType() << ", expected f32, bf16, ui8 or i32";
    auto name = string(op.getName());
    bindings.push_back(plan::CreateBinding(builder, name, *dtype, numbers<uint64_t>(type.getShape()), arena, buffer.getOffset()));
    return success();
  }

  FailureOr<fb::Offset<fb::Vector<fb::Offset<plan::TensorMap>>>> tensorMaps(ir::LaunchOp op) {
    fb::Offset<fb::Vector<fb::Offset<plan::TensorMap>>> none;
    if (!op.getMaps())
      return none;
    std::vector<fb::Offset<plan::TensorMap>> maps;
    for (auto map : op.getMapsAttr().getAsRange<DictionaryAttr>()) {
      auto number = [&](StringRef field) { return static_cast<uint64_t>(map.getAs<IntegerAttr>(field).getInt()); };
      std::optional<plan::DType> dtype = dtypeOf(map.getAs<StringAttr>("dtype").getValue());
      if (!dtype)
        return op.emitOpError("has a tensor map of ") << map.getAs<StringAttr>("dtype") << ", expected f32, bf16, u8 or i32";
      maps.push_back(plan::CreateTensorMap(builder, static_cast<uint32_t>(number("arg")), *dtype, number("columns"),
                                           number("rows"), number("row_bytes"), static_cast<uint32_t>(number("box_columns")),
                                           static_cast<uint32_t>(number("box_rows"))));
    }
    return builder.CreateVector(maps);
  }

  FailureOr<fb::Offset<void>> launch(ir::LaunchOp op) {
    uint32_t kernel;
    if (failed(find(op, kernelNumber, op.getKernel(), kernel)))
      return failure();
    if (op.getGrid().size() != 3)
      return op.emitOpError("has a grid of ") << op.getGrid().size() << " numbers, expected 3";
    std::vector<fb::Offset<plan::Slice>> args;
    for (auto [buffer, access] : llvm::zip(op.getArgs(), op.getAccess())) {
      auto arg = slice(op, buffer, static_cast<ir::Access>(access));
      if (failed(arg))
        return failure();
      args.push_back(*arg);
    }
    auto why = notesOf(op);
    if (failed(why))
      return failure();
    auto name = label(op.getLabel());
    auto list = builder.CreateVector(args);
    FailureOr<fb::Offset<fb::Vector<fb::Offset<plan::TensorMap>>>> maps = tensorMaps(op);
    if (failed(maps))
      return failure();
    return plan::CreateLaunch(builder, kernel, op.getStream(), op.getGrid()[0], op.getGrid()[1], op.getGrid()[2], op.getBlock(),
                              op.getSmem(), list, name, *maps, op.getMapsAt(), *why)
        .Union();
  }

  FailureOr<fb::Offset<void>> collective(ir::CollectiveOp op) {
    std::optional<plan::DType> dtype = dtypeOf(op.getDtype());
    if (!dtype)
      return op.emitOpError("moves elements of type '") << op.getDtype() << "', expected f32, bf16, u8 or i32";
    auto source = slice(op, op.getSource(), ir::Access::read), dest = slice(op, op.getDest(), ir::Access::write);
    auto why = notesOf(op);
    if (failed(source) || failed(dest) || failed(why))
      return failure();
    fb::Offset<plan::Slice> live = 0;
    if (op.getLive()) {
      auto counts = slice(op, op.getLive(), ir::Access::read);
      if (failed(counts))
        return failure();
      live = *counts;
    }
    auto name = label(op.getLabel());
    FailureOr<fb::Offset<plan::Launch>> kernel = launchOf(op, name);
    if (failed(kernel))
      return failure();
    return plan::CreateCollective(builder, static_cast<plan::CollectiveOp>(op.getKind()),
                                  static_cast<plan::MeshAxis>(op.getAxis()), static_cast<plan::Transport>(op.getTransport()),
                                  *dtype, op.getCount(), *source, *dest, op.getPeer(), op.getStream(), name, *why, live,
                                  op.getUnit(), *kernel)
        .Union();
  }

  // Of a collective that goes by peer; else null.
  FailureOr<fb::Offset<plan::Launch>> launchOf(ir::CollectiveOp op, fb::Offset<fb::String> name) {
    if (!op.getKernel())
      return fb::Offset<plan::Launch>();
    uint32_t kernel;
    if (failed(find(op, kernelNumber, *op.getKernel(), kernel)))
      return failure();
    std::vector<fb::Offset<plan::Slice>> args;
    SmallVector<std::pair<Value, ir::Access>> all = {{op.getSource(), ir::Access::read}};
    if (op.getLive())
      all.emplace_back(op.getLive(), ir::Access::read);
    all.emplace_back(op.getDest(), ir::Access::write);
    for (auto [buffer, access] : llvm::zip(op.getMore(), op.getAccess()))
      all.emplace_back(buffer, static_cast<ir::Access>(access));
    all.emplace_back(op.getArea(), ir::Access::update);
    for (auto [buffer, access] : all) {
      auto arg = slice(op, buffer, access);
      if (failed(arg))
        return failure();
      args.push_back(*arg);
    }
    auto list = builder.CreateVector(args);
    const ArrayRef<int32_t> grid = *op.getGrid();
    return plan::CreateLaunch(builder, kernel, op.getStream(), grid[0], grid[1], grid[2], op.getBlock(), op.getSmem(), list,
                              name);
  }

  FailureOr<fb::Offset<void>> copy(ir::CopyOp op) {
    auto source = slice(op, op.getSource(), ir::Access::read), dest = slice(op, op.getDest(), ir::Access::write);
    if (failed(source) || failed(dest))
      return failure();
    auto name = label(op.getLabel());
    return plan::CreateCopy(builder, *source, *dest, op.getStream(), name).Union();
  }

  LogicalResult add(ir::EntryOp op) {
    std::vector<fb::Offset<plan::Binding>> inputs, outputs;
    std::vector<plan::Command> kinds;
    std::vector<fb::Offset<void>> commands;
    auto command = [&](plan::Command kind, FailureOr<fb::Offset<void>> offset) -> LogicalResult {
      if (failed(offset))
        return failure();
      kinds.push_back(kind);
      commands.push_back(*offset);
      return success();
    };
    for (auto input : op.getBody().front().getOps<ir::InputOp>())
      if (failed(bind(input, inputs)))
        return failure();
    for (auto output : op.getBody().front().getOps<ir::OutputOp>())
      if (failed(bind(output, outputs)))
        return failure();
    for (Operation &inner : op.getBody().front()) {
      LogicalResult result =
          TypeSwitch<Operation *, LogicalResult>(&inner)
              .Case<ir::SliceOp, ir::InputOp, ir::OutputOp>([](auto) { return success(); })
              .Case([&](ir::LaunchOp typed) { return command(plan::Command::Launch, launch(typed)); })
              .Case([&](ir::CollectiveOp typed) { return command(plan::Command::Collective, collective(typed)); })
              .Case([&](ir::CopyOp typed) { return command(plan::Command::Copy, copy(typed)); })
              .Case([&](ir::RecordOp r) {
                return command(plan::Command::Record, plan::CreateRecord(builder, r.getEvent(), r.getStream()).Union());
              })
              .Case([&](ir::WaitOp w) {
                return command(plan::Command::Wait, plan::CreateWait(builder, w.getEvent(), w.getStream()).Union());
              })
              .Default([](Operation *other) { return other->emitOpError("has no table in a plan file; run assign-memory"); });
      if (failed(result))
        return failure();
    }
    auto why = notesOf(op);
    if (failed(why))
      return failure();
    auto name = string(op.getSymName());
    auto inputVector = builder.CreateVector(inputs), outputVector = builder.CreateVector(outputs);
    auto kindVector = builder.CreateVector(kinds);
    auto commandVector = builder.CreateVector(commands);
    entries.push_back(plan::CreateEntry(builder, name, static_cast<plan::EntryKind>(op.getKind()), op.getRows(), op.getSegments(),
                                        op.getLogitRows(), op.getStage(), op.getStreams(), op.getEvents(), inputVector,
                                        outputVector, kindVector, commandVector, *why));
    return success();
  }
};

} // namespace

FailureOr<std::string> k31::exportPlan(ModuleOp module) { return Exporter(module).run(); }
