// Fused regions: fp32 scalar formulas as arith and math ops. A formula here is the model's, written once for all ops.
#pragma once
#include "mlir/IR/Builders.h"

namespace k31 {

// Builds scalar f32 values at the builder's insertion point.
class Scalars {
public:
  Scalars(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value constant(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, double y) { return mul(x, constant(y)); }
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  mlir::Value exp(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value rsqrt(mlir::Value x);
  mlir::Value sigmoid(mlir::Value x);  // 1 / (1 + exp(-x))
  mlir::Value softplus(mlir::Value x); // max(x, 0) + log1p(exp(-|x|)): no overflow
  mlir::Value silu(mlir::Value x) { return mul(x, sigmoid(x)); }
  mlir::Value sum(mlir::Value x); // over the row or column group of nn.row

  // rsqrt(mean(x^2) + eps) over `columns` values: a value a row
  mlir::Value inverseRms(mlir::Value x, int64_t columns, double eps);
  // softmax over the values of a list, as weights of another
  mlir::Value softmaxMix(mlir::ValueRange scores, mlir::ValueRange values);
  // beta tanh(g / beta) sigmoid(g)
  mlir::Value situ(mlir::Value g, double beta);
  // limit tanh(x / limit)
  mlir::Value softLimit(mlir::Value x, double limit);

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace k31
