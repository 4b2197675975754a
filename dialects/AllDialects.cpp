#include "dialects/AllDialects.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Coll/Coll.h"
#include "dialects/K31/K31.h"
#include "dialects/Moe/Moe.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

void k31::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<model::K31Dialect, nn::NNDialect, attn::AttnDialect, moe::MoeDialect, coll::CollDialect, planir::PlanDialect,
                  mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect>();
}
