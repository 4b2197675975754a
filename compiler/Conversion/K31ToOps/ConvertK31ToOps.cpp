// Level 1 to level 2: @text becomes one function a bucket, each layer body one function a bucket, rows get a static capacity.
#include "compiler/Conversion/K31ToOps/Conversions.h"
#include "compiler/Conversion/K31ToOps/EntryFunction.h"
#include "compiler/Conversion/K31ToOps/ExpertForm.h"
#include "compiler/Conversion/K31ToOps/Rows.h"
#include "compiler/Conversion/K31ToOps/Stages.h"
#include "compiler/Passes.h"
#include "dialects/Moe/Moe.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

namespace k31 {
#define GEN_PASS_DEF_CONVERTK31TOOPS
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

// Layers by the body that they call.
using LayersOf = llvm::StringMap<SmallVector<int64_t>>;

FailureOr<LayersOf> layersOfBodies(func::FuncOp text) {
  LayersOf layers;
  for (auto call : text.getOps<func::CallOp>()) {
    APInt layer;
    if (call.getNumOperands() < 2 || !matchPattern(call.getOperand(0), m_ConstantInt(&layer)))
      return call.emitOpError("expected a constant layer as first operand");
    layers[call.getCallee()].push_back(layer.getSExtValue());
  }
  return layers;
}

class Converter {
public:
  Converter(ModuleOp module, func::FuncOp text, TextForm form, const EntryOptions &options, const Mesh &mesh, Type activation,
            Type cacheElement, LayersOf layers)
      : module(module), text(text), form(form), options(options), activation(activation), layers(std::move(layers)),
        state(module, mesh, options), cuts(text, mesh.pp), b(module.getContext()) {
    state.cacheElement = cacheElement;
  }

  LogicalResult run() {
    SmallVector<func::FuncOp> bodies;
    for (auto f : module.getOps<func::FuncOp>())
      if (layers.contains(f.getSymName()))
        bodies.push_back(f);
    RowChooser chooser(module, text, activation, state);
    if (failed(chooser.readWishes()))
      return failure();
    b.setInsertionPointToEnd(module.getBody());
    for (Bucket &bucket : bucketsOf(options, state.mesh.tp)) {
      notes = chooser.choose(bucket);
      allGroups = seesAllGroups(bucket);
      for (func::FuncOp body : bodies)
        if (failed(convertBody(body, bucket)))
          return failure();
      for (int64_t stage = 0; stage < state.mesh.pp; ++stage)
        if (failed(convertText(bucket, stage)))
          return failure();
    }
    state.declarePools();
    text.erase();
    for (func::FuncOp body : bodies)
      body.erase();
    return success(!state.failed);
  }

private:
  Type live(int64_t groups = 1) { return RankedTensorType::get({groups}, b.getI32Type()); }
  // What bodies take besides layer, live rows and batch; nothing on one rank.
  struct RankValue {
    Type type;
    std::function<Value &(OpsBuilder &)> of;
  };
  SmallVector<RankValue> rankValues(const Bucket &bucket) {
    SmallVector<RankValue> out;
    if (state.mesh.tp > 1)
      out.push_back({live(), [](OpsBuilder &o) -> Value & { return o.tensorRank; }});
    if (state.mesh.ep > 1)
      out.push_back({live(), [](OpsBuilder &o) -> Value & { return o.expertRank; }});
    if (allGroups)
      out.push_back({live(state.mesh.edp()), [](OpsBuilder &o) -> Value & { return o.liveOfGroups; }});
    if (bucket.isSharded()) {
      out.push_back({live(), [](OpsBuilder &o) -> Value & { return o.own.live; }});
      out.push_back({bucket.ownBatchType(b.getContext()), [](OpsBuilder &o) -> Value & { return o.own.batch; }});
    }
    return out;
  }
  // Does a layer compute with the rows of all dp groups of its expert group?
  bool seesAllGroups(const Bucket &bucket) {
    return state.mesh.edp() > 1 &&
           module
               ->walk([&](model::LatentMoEOp op) {
                 const ExpertChoice choice = chooseExpertForm(state.mesh, options, bucket, activation, op);
                 return choice.form == ExpertForm::replicate ? WalkResult::interrupt() : WalkResult::advance();
               })
               .wasInterrupted();
  }
  // Rows of the residual stream of this rank, for the dynamic [T, C] of level 1.
  static Type staticType(Type type, const Bucket &bucket) { return withRows(type, bucket.streamRows); }
  static std::string nameIn(const Bucket &bucket, StringRef body) { return bucket.name + "." + body.str(); }

  // body.X(layer, sources..., prefix) to BUCKET.body.X(layer, live, batch, what ranks need, sources..., prefix).
  LogicalResult convertBody(func::FuncOp body, const Bucket &bucket) {
    SmallVector<Type> inputs = {b.getIndexType(), live(), bucket.batchType(b.getContext())};
    for (const RankValue &value : rankValues(bucket))
      inputs.push_back(value.type);
    const size_t added = inputs.size();
    for (Type type : body.getArgumentTypes().drop_front())
      inputs.push_back(staticType(type, bucket));
    SmallVector<Type> results = llvm::map_to_vector(body.getResultTypes(), [&](Type t) { return staticType(t, bucket); });
    auto f = func::FuncOp::create(b, body.getLoc(), nameIn(bucket, body.getSymName()), b.getFunctionType(inputs, results));
    f.setPrivate();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(f.addEntryBlock());
    OpsBuilder o(state, bucket, activation, b);
    o.layer = f.getArgument(0);
    o.setRows(f.getArgument(1), f.getArgument(2));
    for (auto [i, value] : llvm::enumerate(rankValues(bucket)))
      value.of(o) = f.getArgument(3 + i);
    o.layers = layers[body.getSymName()];
    for (auto [old, now] : llvm::zip_equal(body.getArguments().drop_front(), f.getArguments().drop_front(added)))
      o.values.map(old, now);
    for (Operation &op : body.getBody().front()) {
      if (auto end = dyn_cast<func::ReturnOp>(op))
        func::ReturnOp::create(b, op.getLoc(), o.get(end.getOperand(0)));
      else if (failed(convertOp(o, &op)))
        return failure();
    }
    return success();
  }

  LogicalResult convertOp(OpsBuilder &o, Operation *op) {
    Value result =
        llvm::TypeSwitch<Operation *, Value>(op)
            .Case<model::EmbedOp, model::RMSNormOp, model::AttnResOp, model::AddOp, model::KDAOp, model::QueryLatentOp,
                  model::DSAOp, model::MLAOp, model::MLPOp, model::LatentMoEOp>([&](auto known) { return convert(o, known); })
            .Default(Value());
    if (!result)
      return op->emitOpError("has no form at level 2");
    o.values.map(op->getResult(0), result);
    return success();
  }

  LogicalResult convertText(const Bucket &bucket, int64_t stage) {
    EntryFunction entry = createEntry(b, text, form, state.mesh, bucket, stage, notes);
    func::FuncOp f = entry.function;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&f.getBody().front());
    OpsBuilder o(state, bucket, activation, b);
    o.setRows(entry.live, entry.batch);
    o.tensorRank = entry.tensorRank, o.expertRank = entry.expertRank;
    o.makeOwn();
    if (allGroups)
      o.liveOfGroups = o.allGather(o.live, coll::Axis::edp);
    if (stage == 0)
      for (auto [i, old] : llvm::enumerate(text.getArguments().drop_back(form.head)))
        o.values.map(old, form.embed ? f.getArgument(i) : o.ownRows(f.getArgument(i)));
    else
      for (Value old : cuts.crossing(stage)) {
        Location loc = o.at("stage");
        o.values.map(old, coll::RecvOp::create(b, loc, staticType(old.getType(), bucket), coll::Axis::pp, uint64_t(stage - 1)));
      }
    for (Operation &op : text.getBody().front()) {
      if (isa<arith::ConstantOp>(op))
        b.clone(op, o.values);
      else if (cuts.stageOf(&op) == stage && failed(convertTextOp(o, entry, &op)))
        return failure();
    }
    if (stage + 1 == state.mesh.pp)
      return success();
    for (Value old : cuts.crossing(stage + 1))
      coll::SendOp::create(b, o.at("stage"), o.get(old), coll::Axis::pp, uint64_t(stage + 1));
    func::ReturnOp::create(b, text.getLoc());
    return success();
  }

  LogicalResult convertTextOp(OpsBuilder &o, const EntryFunction &entry, Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      convertCall(o, call);
    } else if (auto head = dyn_cast<model::HeadOp>(op)) {
      HeadResults out = convertHead(o, head, entry.logitRows, entry.liveLogits, entry.sampling);
      func::ReturnOp::create(b, op->getLoc(), ValueRange{out.logits, out.sampled});
    } else if (auto end = dyn_cast<func::ReturnOp>(op)) {
      if (!form.head)
        func::ReturnOp::create(b, op->getLoc(), llvm::map_to_vector(end.getOperands(), [&](Value v) { return o.full(v); }));
    } else {
      return convertOp(o, op);
    }
    return success();
  }

  void convertCall(OpsBuilder &o, func::CallOp call) {
    SmallVector<Value> operands = {o.get(call.getOperand(0)), o.live, o.batch};
    for (const RankValue &value : rankValues(o.bucket))
      operands.push_back(value.of(o));
    for (Value old : call.getOperands().drop_front())
      operands.push_back(o.get(old));
    auto now = func::CallOp::create(b, call.getLoc(), nameIn(o.bucket, call.getCallee()),
                                    TypeRange{staticType(call.getResult(0).getType(), o.bucket)}, operands);
    o.values.map(call.getResult(0), now.getResult(0));
  }

  ModuleOp module;
  func::FuncOp text;
  const TextForm form;
  EntryOptions options;
  Type activation;
  LayersOf layers;
  ModuleState state;
  StageCuts cuts;
  SmallVector<Note> notes; // of the bucket's entries
  bool allGroups = false;  // seesAllGroups() of the bucket
  OpBuilder b;
};

// Paged caches hold activations unless k31.options says kv_dtype.
FailureOr<Type> cacheElementOf(ModuleOp module, Type activation) {
  auto wanted = module->getAttrOfType<DictionaryAttr>("k31.options").getAs<StringAttr>("kv_dtype");
  if (!wanted)
    return activation;
  if (wanted.getValue() == "bf16")
    return Type(BFloat16Type::get(module.getContext()));
  if (wanted.getValue() == "fp8")
    return Type(Float8E4M3FNType::get(module.getContext()));
  return module.emitError("k31.options: kv_dtype is ") << wanted << ", expected \"bf16\" or \"fp8\"";
}

struct ConvertK31ToOpsPass : impl::ConvertK31ToOpsBase<ConvertK31ToOpsPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<nn::NNDialect, attn::AttnDialect, moe::MoeDialect, coll::CollDialect, arith::ArithDialect, math::MathDialect,
                    func::FuncDialect>();
  }

  void runOnOperation() override {
    if (failed(convertModule(getOperation())))
      signalPassFailure();
  }

  static LogicalResult convertModule(ModuleOp module) {
    auto text = module.lookupSymbol<func::FuncOp>("text");
    if (!text || text.isExternal())
      return module.emitError("has no @text(tokens, logit rows) -> logits to convert");
    FailureOr<EntryOptions> options = readEntryOptions(module);
    FailureOr<Mesh> mesh = readMesh(module);
    FailureOr<LayersOf> layers = layersOfBodies(text);
    if (failed(options) || failed(mesh) || failed(layers))
      return failure();
    FailureOr<TextForm> form = formOf(text);
    if (failed(form))
      return failure();
    Type stream = form->embed ? (*text.getOps<model::EmbedOp>().begin()).getResult().getType() : text.getArgumentTypes()[0];
    Type activation = cast<RankedTensorType>(stream).getElementType();
    auto wanted = module->getAttrOfType<DictionaryAttr>("k31.options").getAs<StringAttr>("activations");
    if (wanted && wanted.getValue() != (activation.isF32() ? "fp32" : "bf16"))
      return module.emitError("k31.options: activations is ") << wanted << ", but the model was imported with " << activation;
    FailureOr<Type> caches = cacheElementOf(module, activation);
    if (failed(caches))
      return failure();
    const int64_t calls = llvm::range_size(text.getOps<func::CallOp>());
    if (mesh->pp > calls)
      return module.emitError("--mesh pp=") << mesh->pp << ": a plan of " << calls << " layers has at most " << calls
                                            << " pipeline stages";
    return Converter(module, text, *form, *options, *mesh, activation, *caches, std::move(*layers)).run();
  }
};

} // namespace
} // namespace k31
