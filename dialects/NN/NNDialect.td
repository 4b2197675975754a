#ifndef K31_NN_DIALECT_TD
#define K31_NN_DIALECT_TD
include "mlir/IR/DialectBase.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::k31::nn";
  let summary = "Dense parts of what one rank computes";
  let description = [{
    Level 2. Row-major tensors with static shapes: `[T, C]` holds T rows, of which the first `live` ones count. Weights are
    names, never values: `nn.stack` declares one, `nn.weight` picks a member.

    Elementwise and row-wise work is a region of `arith` and `math` ops on scalars. An operand of such a region broadcasts by
    its shape: `[T, C]` one value an element; `[T, 1]` one value a row; `[C]` one value a column; `[G]` with G dividing C one
    value for each group of C / G neighbouring columns. In `nn.row` with `groups`, `[C / groups]` repeats in each group.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}
#endif
