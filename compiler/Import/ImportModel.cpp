#include "compiler/Import/ImportModel.h"
#include "compiler/Import/BuildModel.h"
#include "compiler/Import/MatchTensors.h"
#include "dialects/AllDialects.h"
#include "dialects/K31/K31.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace k31 {
using namespace importer;

static DictionaryAttr modelFacts(Builder &b, const ModelConfig &config, const Match &match) {
  return b.getDictionaryAttr(
      {b.getNamedAttr("family", b.getStringAttr(familyName(config.family))),
       b.getNamedAttr("layers", b.getI64IntegerAttr(config.layers)), b.getNamedAttr("hidden", b.getI64IntegerAttr(config.hidden)),
       b.getNamedAttr("vocab", b.getI64IntegerAttr(config.vocab)), b.getNamedAttr("eos", b.getDenseI64ArrayAttr(config.eos)),
       b.getNamedAttr("prefix", b.getStringAttr(match.prefix)),
       b.getNamedAttr("vision_tensors", b.getI64IntegerAttr(match.visionTensors))});
}

static DictionaryAttr checkpointFacts(Builder &b, const Checkpoint &checkpoint) {
  SmallVector<Attribute> files;
  for (const ShardFile &file : checkpoint.files)
    files.push_back(b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(file.name)),
                                         b.getNamedAttr("bytes", b.getI64IntegerAttr(static_cast<int64_t>(file.bytes)))}));
  return b.getDictionaryAttr(
      {b.getNamedAttr("hash", b.getStringAttr(checkpoint.hash)), b.getNamedAttr("files", b.getArrayAttr(files))});
}

FailureOr<OwningOpRef<ModuleOp>> importModel(MLIRContext &context, const ImportOptions &options) {
  context.loadDialect<model::K31Dialect, nn::NNDialect, arith::ArithDialect, func::FuncDialect>();
  Reporter reporter(context);
  if (options.activations != "bf16" && options.activations != "fp32") {
    reporter.error("activations", "--activations is \"" + options.activations + "\", expected bf16 or fp32");
    return failure();
  }
  FailureOr<ModelConfig> config = readModelConfig(context, options.modelDir, options.mlaNormEps);
  if (failed(config))
    return failure();
  auto checkpoint = read_checkpoint(options.modelDir);
  if (!checkpoint) {
    reporter.error("checkpoint", checkpoint.error().message);
    return failure();
  }
  FailureOr<Match> match = matchTensors(*config, *checkpoint, reporter);
  if (!reporter.finish("checkpoint") || failed(match))
    return failure();

  const LayerRange range = options.layers.value_or(LayerRange{0, config->layers});
  if (range.end > config->layers) {
    reporter.error("layers", "--layers " + Twine(range.begin) + ":" + Twine(range.end) + ": the model has " +
                                 Twine(config->layers) + " layers, so the range ends at " + Twine(config->layers) + " at most");
    return failure();
  }
  keepLayers(*match, range.begin, range.end, config->layers, reporter);

  OwningOpRef<ModuleOp> module = ModuleOp::create(NameLoc::get(StringAttr::get(&context, familyName(config->family))));
  Builder b(&context);
  (*module)->setAttr("k31.model", modelFacts(b, *config, *match));
  (*module)->setAttr("k31.checkpoint", checkpointFacts(b, *checkpoint));
  Type activation = options.activations == "bf16" ? Type(b.getBF16Type()) : Type(b.getF32Type());
  buildModel(*module, *config, *match, activation, range);
  if (failed(verify(*module)))
    return failure();
  return module;
}

} // namespace k31
