#ifndef K31_ATTN_OPS_TD
#define K31_ATTN_OPS_TD
include "dialects/Attn/AttnTypes.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;

def Attn_PoolOp : Attn_Op<"pool", [Symbol]> {
  let summary = "declares the caches of one kind, one a member layer";
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$members, TypeAttrOf<Attn_CacheType>:$type);
  let assemblyFormat = "$sym_name `members` $members attr-dict `:` $type";
  let hasVerifier = 1;
}

def Attn_CacheOp : Attn_Op<"cache", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the handle of a layer's cache";
  let arguments = (ins FlatSymbolRefAttr:$pool, Index:$layer);
  let results = (outs Attn_CacheType:$result);
  let assemblyFormat = "$pool `[` $layer `]` attr-dict `:` type($result)";
}

def Attn_BatchRowsOp : Attn_Op<"batch_rows", [Pure]> {
  let summary = "the rows of one of some ranks, as counts [4], segments [S, 6] and row_segment [T / ranks] of a batch of their own";
  let description = [{
    Rows [c T / ranks, (c + 1) T / ranks) at coordinate c, counted from 0. Segments keep their places, so that the block table
    serves on; one without a row there has length 0.
  }];
  let arguments = (ins Attn_BatchType:$batch, AnyRankedTensor:$coordinate);
  let results = (outs AnyRankedTensor:$counts, AnyRankedTensor:$segments, AnyRankedTensor:$row_segment);
  let assemblyFormat = "$batch `at` $coordinate attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Attn_BatchOfOp : Attn_Op<"batch_of", [Pure]> {
  let summary = "counts, segments and row_segment as a batch, with the block table of another one";
  let arguments = (ins AnyRankedTensor:$counts, AnyRankedTensor:$segments, AnyRankedTensor:$row_segment, Attn_BatchType:$table);
  let results = (outs Attn_BatchType:$result);
  let assemblyFormat = "$counts `,` $segments `,` $row_segment `table` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Attn_AppendOp : Attn_Op<"append"> {
  let summary = "writes [T, C] into columns [begin, begin + C) of the cache rows of the live tokens";
  let arguments = (ins AnyRankedTensor:$x, Arg<Attn_CacheType, "", [MemWrite]>:$cache, Attn_BatchType:$batch, I64Attr:$begin);
  let assemblyFormat = "$x `to` $cache `at` $begin `,` $batch attr-dict `:` type($x) `,` type($cache) `,` type($batch)";
  let hasVerifier = 1;
}

def Attn_ShortConvOp : Attn_Op<"short_conv"> {
  let summary = "causal depthwise convolution over each segment, then a region: [T, C] and [C, taps] to [T, C]";
  let description = "Reads the inputs before the segment from slot_in and leaves the last taps - 1 inputs in slot_out.";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, Arg<Attn_CacheType, "", [MemRead, MemWrite]>:$cache,
                       Attn_BatchType:$batch, OptionalAttr<StrArrayAttr>:$fused);
  let regions = (region AnyRegion:$epilogue);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `,` $w `window` $cache `,` $batch (`fused` $fused^)? attr-dict-with-keyword (`epilogue` $epilogue^)?
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Attn_KDAOp : Attn_Op<"kda"> {
  let summary = "Kimi Delta Attention: q, k, v, log decay [T, H D], beta [T, H] to [T, H D]";
  let description = [{
    q and k are normalised per head inside, q scaled by D^-0.5. The fp32 state [H, key, value] is read from slot_in before each
    segment and written to slot_out after it. `chunk` is the length of the chunk form; 1 is token by token.
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k, AnyRankedTensor:$v, AnyRankedTensor:$g, AnyRankedTensor:$beta,
                       Arg<Attn_CacheType, "", [MemRead, MemWrite]>:$state, Attn_BatchType:$batch, I64Attr:$heads,
                       DefaultValuedAttr<I64Attr, "1">:$chunk);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v `decay` $g `beta` $beta `state` $state `,` $batch `heads` $heads (`chunk` $chunk^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Attn_KDADecodeOp : Attn_Op<"kda_decode"> {
  let summary = "q, k, v before their convolution [T, 3 H D] to what the nn.row on the heads of attn.kda gives: a decode step in one kernel";
  let description = [{
    attn.short_conv over the columns of q, k and v with its region `activation`, attn.kda token by token, and an nn.row in H groups
    with its region `body`, which has an argument for each of `inputs` and, as number `at`, one for the recurrence's result.
    What lies between them is rounded to `qkv` and `out` and never stored. select-kernels makes it.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, Arg<Attn_CacheType, "", [MemRead, MemWrite]>:$window,
                       AnyRankedTensor:$g, AnyRankedTensor:$beta, Arg<Attn_CacheType, "", [MemRead, MemWrite]>:$state,
                       Attn_BatchType:$batch, Variadic<AnyRankedTensor>:$inputs, I64Attr:$heads, TypeAttr:$qkv, TypeAttr:$out,
                       I64Attr:$at, StrArrayAttr:$fused);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$activation);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $fused `of` $x `,` $w `window` $window `decay` $g `beta` $beta `state` $state `,` $batch `heads` $heads `rounded` $qkv `,` $out
    `at` $at `(` $inputs `)` attr-dict-with-keyword $body (`activation` $activation^)? `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return getState().getType().getShape().back(); }
  }];
}

def Attn_IndexSelectOp : Attn_Op<"index_select", [InferTypeOpAdaptor]> {
  let summary = "DSA indexer: exact top_k positions of each token, i32 [T, top_k] ascending, padded with -1";
  let description = [{
    One op scores and selects: I(t, s) = sum_h w[t, h] heads^-0.5 relu(head_dim^-0.5 q[t, h] . k(s)), s <= t; equal scores
    take the lower position. The scores live in a workspace of some rows, never as a whole.
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$w, Arg<Attn_CacheType, "", [MemRead]>:$keys, Attn_BatchType:$batch,
                       I64Attr:$heads, I64Attr:$top_k);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $q `weights` $w `keys` $keys `,` $batch `heads` $heads `top_k` $top_k attr-dict
    `:` type($q) `,` type($w) `,` type($keys) `,` type($batch)
  }];
  let hasVerifier = 1;
}

def Attn_AttendOp : Attn_Op<"attend"> {
  let summary = "MLA in latent space: q_latent [T, H L], q_shared [T, H S'] to [T, H L], over all or selected positions";
  let description = [{
    score = scale (q_latent . c + q_shared . r) over the cache rows c [L], r [S]; the result is the weighted sum of c. q_shared
    holds S' >= S values a head, of which those from `shared_begin` count. An optional second result [T, H] is the
    log-sum-exp, by which partial results merge.
  }];
  let arguments = (ins AnyRankedTensor:$q_latent, AnyRankedTensor:$q_shared, Arg<Attn_CacheType, "", [MemRead]>:$cache,
                       Attn_BatchType:$batch, Optional<AnyRankedTensor>:$indices, I64Attr:$heads, I64Attr:$shared_begin,
                       F32Attr:$scale);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$lse);
  let assemblyFormat = [{
    $q_latent `,` $q_shared `cache` $cache `,` $batch (`selected` $indices^)? `heads` $heads `shared_begin` $shared_begin
    `scale` $scale attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}
#endif
