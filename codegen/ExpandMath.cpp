#include "codegen/ExpandMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace k31 {
namespace {

// tanh within 2 ulp up to and including its limits (the approximation upstream ends at 0.9999998).
// |x| < 0.625: Lambert's continued fraction x / (1 + z / (3 + z / (5 + z / (7 + z / 9)))), z = x^2, whose next term is below
// 1e-9. Else: sign(x) (1 - 2 / (e^(2|x|) + 1)); past 10 the result is 1 in fp32.
struct ExpandTanh : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto number = [&](float v) -> Value { return arith::ConstantOp::create(b, DenseElementsAttr::get(type, v)); };
    auto fma = [&](Value x, Value y, Value z) -> Value { return math::FmaOp::create(b, x, y, z); };
    Value x = op.getOperand(), z = arith::MulFOp::create(b, x, x), a = math::AbsFOp::create(b, x);
    Value small = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, a, number(0.625f));
    // (945 + 105 z + z^2) x / (945 + 420 z + 15 z^2)
    Value above = arith::MulFOp::create(b, fma(fma(z, number(1), number(105)), z, number(945)), x);
    Value below = fma(fma(z, number(15), number(420)), z, number(945));
    Value far = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, a, number(10)); // NaN stays
    Value held = arith::SelectOp::create(b, far, number(10), a);
    Value e = math::ExpOp::create(b, arith::AddFOp::create(b, held, held));
    Value numerator = arith::SelectOp::create(b, small, above, number(-2));
    Value denominator = arith::SelectOp::create(b, small, below, arith::AddFOp::create(b, e, number(1)));
    Value quotient = arith::DivFOp::create(b, numerator, denominator);
    Value large = math::CopySignOp::create(b, arith::AddFOp::create(b, quotient, number(1)), x);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, small, quotient, large);
    return success();
  }
};

// Turned into processor instructions (or a few of them) by LLVM.
bool isNative(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp, math::IsFiniteOp,
             math::IsInfOp, math::IsNaNOp, math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

} // namespace

LogicalResult expandMath(ModuleOp module) {
  // Each step may leave ops of the next: sinh becomes exp.
  auto rewrite = [&](auto populate) {
    RewritePatternSet patterns(module.getContext());
    populate(patterns);
    return applyPatternsGreedily(module, std::move(patterns));
  };
  if (failed(rewrite([](RewritePatternSet &p) {
        p.add<ExpandTanh>(p.getContext());
        math::populateExpansionPatterns(p, {"sinh", "cosh", "tan", "exp2", "fpowi", "roundeven_", "asinh", "acosh", "atanh"});
      })) ||
      failed(rewrite([](RewritePatternSet &p) {
        auto approximate = [](StringRef name) {
          return name != "math.tanh" && name != "tanh" && name != "math.rsqrt" && name != "rsqrt";
        };
        populateMathPolynomialApproximationPatterns(p, approximate);
      })))
    return failure();
  WalkResult result = module.walk([&](Operation *op) {
    if (!isa<math::MathDialect>(op->getDialect()) || isNative(op))
      return WalkResult::advance();
    op->emitOpError("has no form without a math library; write it by exp, log, tanh, erf, sin, cos, sqrt or arith ops");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

} // namespace k31
