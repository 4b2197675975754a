#ifndef K31_K31_OPS_TD
#define K31_K31_OPS_TD
include "dialects/K31/K31Dialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class K31_Op<string mnemonic, list<Trait> traits = []> : Op<K31_Dialect, mnemonic, [Pure] # traits>;
// An op with a dictionary of weights: required keys, no unknown ones, and tensors of the shapes that its attributes say.
class K31_WeightsOp<string mnemonic, list<Trait> traits = []>
    : K31_Op<mnemonic, [DeclareOpInterfaceMethods<SymbolUserOpInterface>] # traits> {
  let hasVerifier = 1;
}
def Rows : RankedTensorOf<[AnyType]>; // [T, C], T dynamic

def K31_ActivationAttr : AttrDef<K31_Dialect, "Activation"> {
  let mnemonic = "activation";
  let summary = "a gated activation: silu(g) u, or situ with its bounds (no linear_beta: the up branch is unbounded)";
  let parameters = (ins StringRefParameter<"silu or situ">:$name, OptionalParameter<"::mlir::FloatAttr">:$beta,
                        OptionalParameter<"::mlir::FloatAttr">:$linear_beta);
  let assemblyFormat = "`<` $name (`,` `beta` `=` $beta^)? (`,` `linear_beta` `=` $linear_beta^)? `>`";
  let genVerifyDecl = 1;
}

def K31_EmbedOp : K31_WeightsOp<"embed"> {
  let summary = "rows of the embedding table: ids [T] to [T, H]; weights: embed_tokens";
  let arguments = (ins Rows:$tokens, DictionaryAttr:$weights);
  let results = (outs Rows:$result);
  let assemblyFormat = "$tokens `weights` $weights attr-dict `:` functional-type(operands, results)";
}

def K31_RMSNormOp : K31_WeightsOp<"rms_norm", [AllTypesMatch<["x", "result"]>]> {
  let summary = "x rsqrt(mean(x^2) + eps) gain: [T, H]; weights: gain";
  let arguments = (ins Rows:$x, Optional<Index>:$layer, DictionaryAttr:$weights, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = "$x (`layer` $layer^)? `weights` $weights `eps` $eps attr-dict `:` type($x)";
}

def K31_AttnResOp : K31_WeightsOp<"attn_res", [AttrSizedOperandSegments]> {
  let summary = "block attention residual: softmax over sources [T, H] by their normed product with a query; values stay raw";
  let description = "weights: norm, proj. The last source is the running prefix.";
  let arguments = (ins Variadic<Rows>:$sources, Optional<Index>:$layer, DictionaryAttr:$weights, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = "$sources (`layer` $layer^)? `weights` $weights `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def K31_AddOp : K31_Op<"add", [SameOperandsAndResultType]> {
  let summary = "residual addition: [T, H]";
  let arguments = (ins Rows:$a, Rows:$b);
  let results = (outs Rows:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
}

def K31_KDAOp : K31_WeightsOp<"kda", [AllTypesMatch<["x", "result"]>]> {
  let summary = "Kimi Delta Attention layer: normed [T, H] to [T, H]";
  let description = [{
    weights: q_proj, k_proj, v_proj, q_conv1d, k_conv1d, v_conv1d, f_a_proj, f_b_proj, b_proj, A_log, dt_bias, o_norm, o_proj, and g_proj or
    the low-rank pair g_a_proj, g_b_proj. `gate_bound` set: log decay = bound sigmoid(exp(A_log) z); unset: -exp(A_log) softplus(z).
  }];
  let arguments = (ins Rows:$x, Index:$layer, DictionaryAttr:$weights, I64Attr:$heads, I64Attr:$head_dim, I64Attr:$taps,
                       OptionalAttr<F32Attr>:$gate_bound, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $x `layer` $layer `weights` $weights `heads` $heads `x` $head_dim `taps` $taps (`gate_bound` $gate_bound^)? `eps` $eps attr-dict
    `:` type($x)
  }];
}

def K31_QueryLatentOp : K31_WeightsOp<"query_latent"> {
  let summary = "MLA's low-rank query, normed: [T, H] to [T, q_rank]; weights: q_a_proj, q_a_layernorm";
  let arguments = (ins Rows:$x, Index:$layer, DictionaryAttr:$weights, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = "$x `layer` $layer `weights` $weights `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def K31_DSAOp : K31_WeightsOp<"dsa"> {
  let summary = "lightning indexer: the top_k earlier positions of each token, i32 [T, top_k]";
  let description = "weights: wq_b, wk, k_norm, k_norm_bias, weights_proj. x is the normed input, qa the query latent.";
  let arguments = (ins Rows:$x, Rows:$qa, Index:$layer, DictionaryAttr:$weights, I64Attr:$heads, I64Attr:$head_dim,
                       I64Attr:$top_k, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $x `,` $qa `layer` $layer `weights` $weights `heads` $heads `x` $head_dim `top_k` $top_k `eps` $eps attr-dict
    `:` functional-type(operands, results)
  }];
}

def K31_MLAOp : K31_WeightsOp<"mla", [AttrSizedOperandSegments]> {
  let summary = "NoPE multi-head latent attention: normed [T, H] to [T, H], over all or selected positions";
  let description = [{
    weights: q_b_proj (with qa) or q_proj (without), kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj, o_proj, and g_proj when the output is gated.
    Shapes: q [heads, nope + rope], latent [kv_rank], shared key [rope], values [heads, value].
  }];
  let arguments = (ins Rows:$x, Optional<Rows>:$qa, Optional<Rows>:$selected, Index:$layer, DictionaryAttr:$weights,
                       I64Attr:$heads, I64Attr:$kv_rank, I64Attr:$nope, I64Attr:$rope, I64Attr:$value, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $x (`query` $qa^)? (`selected` $selected^)? `layer` $layer `weights` $weights `heads` $heads `kv_rank` $kv_rank `nope` $nope
    `rope` $rope `value` $value `eps` $eps attr-dict `:` functional-type(operands, results)
  }];
}

def K31_MLPOp : K31_WeightsOp<"mlp", [AllTypesMatch<["x", "result"]>]> {
  let summary = "gated MLP: down(act(gate x, up x)): [T, H]; weights: gate_proj, up_proj, down_proj";
  let arguments = (ins Rows:$x, Index:$layer, DictionaryAttr:$weights, K31_ActivationAttr:$activation);
  let results = (outs Rows:$result);
  let assemblyFormat = "$x `layer` $layer `weights` $weights `act` $activation attr-dict `:` type($x)";
}

def K31_LatentMoEOp : K31_WeightsOp<"latent_moe", [AllTypesMatch<["x", "result"]>]> {
  let summary = "mixture of experts, in a latent space when latent > 0, plus shared experts: [T, H]";
  let description = [{
    weights: gate, e_score_correction_bias, shared gate_proj, up_proj, down_proj (as shared.*), experts as w1, w2, w3 (bf16) or
    w1_packed, w1_scale, ... (MXFP4); with a latent routed_expert_down_proj, routed_expert_up_proj and, when normed, routed_expert_norm.
  }];
  let arguments = (ins Rows:$x, Index:$layer, DictionaryAttr:$weights, K31_ActivationAttr:$activation, I64Attr:$experts,
                       I64Attr:$top_k, I64Attr:$latent, BoolAttr:$renormalize, F32Attr:$scale, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $x `layer` $layer `weights` $weights `act` $activation `experts` $experts `top_k` $top_k `latent` $latent
    `renormalize` $renormalize `scale` $scale `eps` $eps attr-dict `:` type($x)
  }];
}

def K31_HeadOp : K31_WeightsOp<"head"> {
  let summary = "logits of the chosen rows: [T, H] and [L] to fp32 [L, V]; weights: lm_head";
  let arguments = (ins Rows:$x, Rows:$rows, DictionaryAttr:$weights);
  let results = (outs Rows:$result);
  let assemblyFormat = "$x `at` $rows `weights` $weights attr-dict `:` functional-type(operands, results)";
}
#endif
