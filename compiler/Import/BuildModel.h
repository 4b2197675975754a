// Level-1 IR of a model: nn.tensor declarations, one function for each distinct layer body, and @text that calls them.
// What all families share is here; how residuals run through the layers is one file a family.
#pragma once
#include "compiler/Import/ImportModel.h"
#include "compiler/Import/MatchTensors.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace k31::importer {

void buildModel(mlir::ModuleOp module, const ModelConfig &config, const Match &match, mlir::Type activation, LayerRange range);

class ModelBuilder {
public:
  ModelBuilder(mlir::ModuleOp module, const ModelConfig &config, const Match &match, mlir::Type activation, LayerRange range);

  // Weights under their names in an op: {q_proj = @self_attn.q_proj}.
  using Weights = llvm::ArrayRef<std::pair<llvm::StringRef, std::string>>;
  mlir::DictionaryAttr weights(Weights names);

  // Sublayers, each of a normed [T, H].
  mlir::Value attention(mlir::Value x, mlir::Value index, int64_t layer);
  mlir::Value feedForward(mlir::Value x, mlir::Value index, int64_t layer);
  mlir::Value rmsNorm(mlir::Value x, mlir::Value index, const std::string &gain);
  mlir::Value attnRes(mlir::ValueRange sources, mlir::Value index, const std::string &stem); // STEM_norm, STEM_proj
  mlir::Value add(mlir::Value a, mlir::Value b);

  // "kda_moe": what a layer computes, the part of a body's name that both families share.
  std::string layerKind(int64_t layer) const;

  // The function body.NAME(layer index, `sources` x [T, H], prefix) -> [T, H]; made by `fill` when it is new.
  mlir::func::FuncOp body(const std::string &name, size_t sources,
                          llvm::function_ref<mlir::Value(mlir::Value index, mlir::ValueRange sources, mlir::Value prefix)> fill);
  // A call of a body with the layer's number.
  mlir::Value call(mlir::func::FuncOp body, int64_t layer, mlir::ValueRange sources, mlir::Value prefix);

  // The residual stream between two layers: the running sum and, in families that have it, the bank of finished blocks.
  struct Stream {
    mlir::Value prefix;
    llvm::SmallVector<mlir::Value> bank;
  };
  // @text: embed, the layers of the range by `fill`, which works on the stream in place, `finish` and the last norm, the head. A
  // range that starts later takes the stream as arguments (`bank` blocks of it), one that ends earlier returns it.
  void text(size_t bank, llvm::function_ref<void(Stream &)> fill, llvm::function_ref<mlir::Value(const Stream &)> finish);

  const ModelConfig &config;
  const LayerRange range;

private:
  mlir::Value kda(mlir::Value x, mlir::Value index);
  mlir::Value mla(mlir::Value x, mlir::Value index, int64_t layer);
  mlir::Value moe(mlir::Value x, mlir::Value index, int64_t layer);
  mlir::Attribute activationAttr();
  mlir::FloatAttr f32(double value) { return b.getF32FloatAttr(static_cast<float>(value)); }
  mlir::Location at(llvm::StringRef name) { return mlir::NameLoc::get(b.getStringAttr(name)); }

  mlir::ModuleOp module;
  const Match &match;
  mlir::OpBuilder b;
  mlir::RankedTensorType rows; // [T, H] of activations
  llvm::StringMap<mlir::func::FuncOp> bodies;
};

// The layers of a family, in @text.
void buildKimiK3(ModelBuilder &builder);     // block attention residuals
void buildKimiLinear(ModelBuilder &builder); // plain residuals

} // namespace k31::importer
