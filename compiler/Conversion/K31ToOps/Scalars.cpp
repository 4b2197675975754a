#include "compiler/Conversion/K31ToOps/Scalars.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace k31 {

Value Scalars::constant(double value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value))); }
Value Scalars::add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
Value Scalars::sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
Value Scalars::mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
Value Scalars::div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
Value Scalars::max(Value x, Value y) { return arith::MaximumFOp::create(b, loc, x, y); }
Value Scalars::neg(Value x) { return arith::NegFOp::create(b, loc, x); }
Value Scalars::exp(Value x) { return math::ExpOp::create(b, loc, x); }
Value Scalars::tanh(Value x) { return math::TanhOp::create(b, loc, x); }
Value Scalars::rsqrt(Value x) { return math::RsqrtOp::create(b, loc, x); }
Value Scalars::sum(Value x) { return nn::SumOp::create(b, loc, x); }

Value Scalars::sigmoid(Value x) {
  Value one = constant(1);
  return div(one, add(one, exp(neg(x))));
}

Value Scalars::softplus(Value x) {
  Value small = exp(neg(math::AbsFOp::create(b, loc, x)));
  return add(max(x, constant(0)), math::Log1pOp::create(b, loc, small));
}

Value Scalars::inverseRms(Value x, int64_t columns, double eps) {
  return rsqrt(add(mul(sum(mul(x, x)), 1.0 / static_cast<double>(columns)), constant(eps)));
}

Value Scalars::softmaxMix(ValueRange scores, ValueRange values) {
  Value top = scores.front();
  for (Value score : scores.drop_front())
    top = max(top, score);
  Value total, mix;
  for (auto [score, value] : llvm::zip_equal(scores, values)) {
    Value weight = exp(sub(score, top)), part = mul(weight, value);
    total = total ? add(total, weight) : weight;
    mix = mix ? add(mix, part) : part;
  }
  return mul(mix, div(constant(1), total)); // one division a row, not one an element
}

Value Scalars::situ(Value g, double beta) { return mul(softLimit(g, beta), sigmoid(g)); }

Value Scalars::softLimit(Value x, double limit) { return mul(tanh(mul(x, 1.0 / limit)), limit); }

} // namespace k31
