// Level 1 to level 2: @text becomes one function a bucket, each layer body one function a bucket, rows get a static capacity.
#include "compiler/Conversion/K31ToOps/Conversions.h"
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
  Converter(ModuleOp module, func::FuncOp text, const EntryOptions &options, const Mesh &mesh, Type activation, LayersOf layers)
      : module(module), text(text), options(options), activation(activation), layers(std::move(layers)), state(module, mesh),
        b(module.getContext()) {}

  LogicalResult run() {
    SmallVector<func::FuncOp> bodies;
    for (auto f : module.getOps<func::FuncOp>())
      if (layers.contains(f.getSymName()))
        bodies.push_back(f);
    b.setInsertionPointToEnd(module.getBody());
    for (const Bucket &bucket : bucketsOf(options)) {
      for (func::FuncOp body : bodies)
        if (failed(convertBody(body, bucket)))
          return failure();
      if (failed(convertText(bucket)))
        return failure();
    }
    state.declarePools();
    text.erase();
    for (func::FuncOp body : bodies)
      body.erase();
    return success(!state.failed);
  }

private:
  Type live() { return RankedTensorType::get({1}, b.getI32Type()); }
  Type batchOf(const Bucket &bucket) { return attn::BatchType::get(b.getContext(), bucket.rows, bucket.segments, bucket.blocks); }
  // [T, C] of the bucket for the dynamic [T, C] of level 1.
  Type staticType(Type type, const Bucket &bucket) {
    auto rows = dyn_cast<RankedTensorType>(type);
    if (!rows)
      return type;
    SmallVector<int64_t> shape(rows.getShape());
    shape[0] = bucket.rows;
    return rows.clone(shape);
  }
  static std::string nameIn(const Bucket &bucket, StringRef body) { return bucket.name + "." + body.str(); }

  // body.X(layer, sources..., prefix) to BUCKET.body.X(layer, live, batch, sources..., prefix).
  LogicalResult convertBody(func::FuncOp body, const Bucket &bucket) {
    SmallVector<Type> inputs = {b.getIndexType(), live(), batchOf(bucket)};
    for (Type type : body.getArgumentTypes().drop_front())
      inputs.push_back(staticType(type, bucket));
    SmallVector<Type> results = llvm::map_to_vector(body.getResultTypes(), [&](Type t) { return staticType(t, bucket); });
    auto f = func::FuncOp::create(b, body.getLoc(), nameIn(bucket, body.getSymName()), b.getFunctionType(inputs, results));
    f.setPrivate();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(f.addEntryBlock());
    OpsBuilder o(state, bucket, activation, b);
    o.layer = f.getArgument(0), o.live = f.getArgument(1), o.batch = f.getArgument(2);
    o.layers = layers[body.getSymName()];
    for (auto [old, now] : llvm::zip_equal(body.getArguments().drop_front(), f.getArguments().drop_front(3)))
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

  struct Argument {
    Type type;
    StringRef input;
    std::optional<int64_t> offset; // bytes, of one of the counts
  };

  // The entry: its arguments name the plan's inputs, its results the outputs.
  func::FuncOp createEntry(const Bucket &bucket) {
    Builder builder(b.getContext());
    Type i32 = b.getI32Type(), u8 = b.getIntegerType(8, false);
    auto tensor = [](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
    const int64_t L = bucket.logitRows, vocab = cast<RankedTensorType>(text.getResultTypes()[0]).getDimSize(1);
    const Argument arguments[] = {{tensor({bucket.rows}, i32), "tokens", {}},
                                  {live(), "counts", 0},
                                  {live(), "counts", 8},
                                  {batchOf(bucket), "batch", {}},
                                  {tensor({L}, i32), "logit_rows", {}},
                                  {tensor({L, 24}, u8), "sampling", {}}};
    SmallVector<Type> inputs = llvm::map_to_vector(arguments, [](const Argument &a) { return a.type; });
    auto f = func::FuncOp::create(b, text.getLoc(), bucket.name,
                                  b.getFunctionType(inputs, {tensor({L, vocab}, b.getF32Type()), tensor({L}, i32)}));
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      f.setArgAttr(i, "k31.input", builder.getStringAttr(argument.input));
      if (argument.offset)
        f.setArgAttr(i, "k31.offset", builder.getI64IntegerAttr(*argument.offset));
    }
    f.setResultAttr(0, "k31.output", builder.getStringAttr("logits"));
    f.setResultAttr(1, "k31.output", builder.getStringAttr("sampled"));
    f->setAttr("k31.entry",
               builder.getDictionaryAttr({builder.getNamedAttr("kind", builder.getStringAttr(bucket.kind)),
                                          builder.getNamedAttr("rows", builder.getI64IntegerAttr(bucket.rows)),
                                          builder.getNamedAttr("segments", builder.getI64IntegerAttr(bucket.segments)),
                                          builder.getNamedAttr("logit_rows", builder.getI64IntegerAttr(L))}));
    return f;
  }

  LogicalResult convertText(const Bucket &bucket) {
    func::FuncOp f = createEntry(bucket);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(f.addEntryBlock());
    OpsBuilder o(state, bucket, activation, b);
    o.live = f.getArgument(1), o.batch = f.getArgument(3);
    o.values.map(text.getArgument(0), f.getArgument(0));
    for (Operation &op : text.getBody().front()) {
      if (isa<arith::ConstantOp>(op)) {
        b.clone(op, o.values);
      } else if (auto call = dyn_cast<func::CallOp>(op)) {
        convertCall(o, call);
      } else if (auto head = dyn_cast<model::HeadOp>(op)) {
        HeadResults out = convertHead(o, head, f.getArgument(4), f.getArgument(2), f.getArgument(5));
        func::ReturnOp::create(b, op.getLoc(), ValueRange{out.logits, out.sampled});
      } else if (!isa<func::ReturnOp>(op) && failed(convertOp(o, &op))) {
        return failure();
      }
    }
    if (f.getBody().front().empty() || !isa<func::ReturnOp>(f.getBody().front().back()))
      return text.emitOpError("expected one k31.head in front of its return");
    return success();
  }

  void convertCall(OpsBuilder &o, func::CallOp call) {
    SmallVector<Value> operands = {o.get(call.getOperand(0)), o.live, o.batch};
    for (Value old : call.getOperands().drop_front())
      operands.push_back(o.get(old));
    auto now = func::CallOp::create(b, call.getLoc(), nameIn(o.bucket, call.getCallee()),
                                    TypeRange{staticType(call.getResult(0).getType(), o.bucket)}, operands);
    o.values.map(call.getResult(0), now.getResult(0));
  }

  ModuleOp module;
  func::FuncOp text;
  EntryOptions options;
  Type activation;
  LayersOf layers;
  ModuleState state;
  OpBuilder b;
};

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
    if (!text || text.isExternal() || text.getNumArguments() != 2 || text.getNumResults() != 1)
      return module.emitError("has no @text(tokens, logit rows) -> logits to convert");
    FailureOr<EntryOptions> options = readEntryOptions(module);
    FailureOr<Mesh> mesh = meshOfOneRank(module);
    FailureOr<LayersOf> layers = layersOfBodies(text);
    if (failed(options) || failed(mesh) || failed(layers))
      return failure();
    auto embed = text.getOps<model::EmbedOp>();
    if (embed.empty())
      return text.emitOpError("expected a k31.embed");
    Type activation = cast<RankedTensorType>((*embed.begin()).getResult().getType()).getElementType();
    auto wanted = module->getAttrOfType<DictionaryAttr>("k31.options").getAs<StringAttr>("activations");
    if (wanted && wanted.getValue() != (activation.isF32() ? "fp32" : "bf16"))
      return module.emitError("k31.options: activations is ") << wanted << ", but the model was imported with " << activation;
    return Converter(module, text, *options, *mesh, activation, std::move(*layers)).run();
  }
};

} // namespace
} // namespace k31
