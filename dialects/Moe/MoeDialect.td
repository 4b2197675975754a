#ifndef K31_MOE_DIALECT_TD
#define K31_MOE_DIALECT_TD
include "mlir/IR/DialectBase.td"

def Moe_Dialect : Dialect {
  let name = "moe";
  let cppNamespace = "::k31::moe";
  let summary = "Mixture of experts: routing, rows grouped by expert, packed weights";
  let description = [{
    Level 2. The invariant of this dialect: after `moe.permute` rows are grouped by expert and `offsets` is ascending, so that
    rows offsets[e] .. offsets[e + 1] belong to local expert e. MXFP4 weights are `tensor<E x N x K x f4E2M1FN>` with scales
    `tensor<E x N x K/32 x f8E8M0FNU>`; they stay packed, two codes a byte.
  }];
}
#endif
