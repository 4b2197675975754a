// One function for each op of level 1; operands are looked up in the builder, results returned.
#pragma once
#include "compiler/Conversion/K31ToOps/OpsBuilder.h"
#include "dialects/K31/K31.h"

namespace k31 {

// Attention.cpp
mlir::Value convert(OpsBuilder &o, model::KDAOp op);
mlir::Value convert(OpsBuilder &o, model::QueryLatentOp op);
mlir::Value convert(OpsBuilder &o, model::DSAOp op);
mlir::Value convert(OpsBuilder &o, model::MLAOp op);

// Dense.cpp
mlir::Value convert(OpsBuilder &o, model::EmbedOp op);
mlir::Value convert(OpsBuilder &o, model::RMSNormOp op);
mlir::Value convert(OpsBuilder &o, model::AttnResOp op);
mlir::Value convert(OpsBuilder &o, model::AddOp op);
mlir::Value convert(OpsBuilder &o, model::MLPOp op);
// down(act(gate x, up x)) over the weights PREFIXgate_proj, PREFIXup_proj, PREFIXdown_proj
mlir::Value gatedMLP(OpsBuilder &o, mlir::Value x, mlir::DictionaryAttr weights, llvm::StringRef prefix,
                     model::ActivationAttr activation);
// act(left half, right half) of [T, 2F]
mlir::Value gatedActivation(OpsBuilder &o, llvm::StringRef label, mlir::Value both, model::ActivationAttr activation);

// Moe.cpp
mlir::Value convert(OpsBuilder &o, model::LatentMoEOp op);

// Head: logits and sampled ids of the chosen rows.
struct HeadResults {
  mlir::Value logits, sampled;
};
HeadResults convertHead(OpsBuilder &o, model::HeadOp op, mlir::Value logitRows, mlir::Value liveLogits, mlir::Value sampling);

} // namespace k31
