#ifndef K31_MOE_OPS_TD
#define K31_MOE_OPS_TD
include "dialects/Moe/MoeDialect.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Moe_Op<string mnemonic, list<Trait> traits = []> : Op<Moe_Dialect, mnemonic, traits>;
def Moe_Live : TensorOf<[I32]>;

def Moe_RouteOp : Moe_Op<"route", [Pure, InferTypeOpAdaptor]> {
  let summary = "fp32 logits [T, E] and bias [E] to ids i32 [T, k] and weights f32 [T, k]";
  let description = [{
    Scores are sigmoids; the bias only selects, equal scores take the lower expert. Weights come from the unbiased scores,
    divided by their sum when `renormalize`, times `scale`.
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$bias, Moe_Live:$live, I64Attr:$top_k, BoolAttr:$renormalize,
                       F32Attr:$scale);
  let results = (outs AnyRankedTensor:$ids, AnyRankedTensor:$weights);
  let assemblyFormat = [{
    $logits `bias` $bias `live` $live `top_k` $top_k `renormalize` $renormalize `scale` $scale attr-dict
    `:` type($logits) `,` type($bias) `,` type($live)
  }];
  let hasVerifier = 1;
}

def Moe_PermuteOp : Moe_Op<"permute", [Pure, InferTypeOpAdaptor]> {
  let summary = "groups rows by expert: [T, C] and ids [T, k] to rows [T k, C], offsets [experts + 1], slot [T, k]";
  let description = [{
    Experts [first, first + experts) are local; slot is -1 for a choice that lives elsewhere. With a `coordinate` (i32 [1], of this
    rank on the axis that shares out the experts) `first` is coordinate times experts: one program serves all ranks. `live` may hold
    several counts [G]: x then has the rows of G ranks, T / G each, one rank behind the other. So has `moe.combine`.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$ids, Moe_Live:$live, Optional<AnyRankedTensor>:$coordinate, I64Attr:$first,
                       I64Attr:$experts);
  let results = (outs AnyRankedTensor:$rows, AnyRankedTensor:$offsets, AnyRankedTensor:$slot);
  let assemblyFormat = [{
    $x `by` $ids `live` $live (`at` $coordinate^)? `first` $first `experts` $experts attr-dict
    `:` type($x) `,` type($ids) `,` type($live) (`,` type($coordinate)^)?
  }];
  let hasVerifier = 1;
}

def Moe_GroupedLinearOp : Moe_Op<"grouped_linear", [Pure]> {
  let summary = "one matrix an expert: [R, K] grouped rows and [E, N, K] to [R, N], then a region";
  let description = [{
    `pair`, `fused` and the epilogue are as in nn.linear, without extra operands. Weights are MXFP4 with scales, or bf16/fp32
    without.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, Optional<AnyRankedTensor>:$scale, AnyRankedTensor:$offsets,
                       UnitAttr:$pair, OptionalAttr<StrArrayAttr>:$fused);
  let regions = (region AnyRegion:$epilogue);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `,` $w (`scale` $scale^)? `offsets` $offsets (`pair` $pair^)? (`fused` $fused^)? attr-dict-with-keyword
    (`epilogue` $epilogue^)? `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Moe_CombineOp : Moe_Op<"combine", [Pure]> {
  let summary = "sum of a token's rows, weighted: [T k, C], weights [T, k], slot [T, k] to [T, C], fp32 sums in order of k";
  let description = [{
    A slot is the number of a row of x; -1 adds nothing. Without weights each row counts once: the sums of several ranks, one rank's
    rows behind the other's.
  }];
  let arguments = (ins AnyRankedTensor:$x, Optional<AnyRankedTensor>:$weights, AnyRankedTensor:$slot, Moe_Live:$live);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x (`weights` $weights^)? `slot` $slot `live` $live attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
#endif
