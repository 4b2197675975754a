#ifndef K31_NN_OPS_TD
#define K31_NN_OPS_TD
include "dialects/Coll/CollMesh.td"
include "dialects/NN/NNDialect.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class NN_Op<string mnemonic, list<Trait> traits = []> : Op<NN_Dialect, mnemonic, traits>;
def Tensor : RankedTensorOf<[AnyType]>;
def Live : TensorOf<[I32]>; // tensor<1xi32>: the number of rows that count

//===-- weights -------------------------------------------------------------------------------------------------------===//

def NN_TensorOp : NN_Op<"tensor", [Symbol]> {
  let summary = "declares tensors of the checkpoint that differ in their number alone, and where their bytes are";
  let description = [{
    `pattern` is the tensor's name with `{}` for the member (a layer; none when `members` is empty) and, when the type has a
    leading expert dimension, a second `{}` for the expert. The type is that of one member, expert dimension included. `files`
    (one, or one a source tensor) and `offsets` (bytes from the start of the file) run over members, then experts.

    ```mlir
    nn.tensor @self_attn.q_proj "model.layers.{}.self_attn.q_proj.weight" members [0, 1] files [0] offsets [64, 4096] : tensor<256x192xbf16>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$pattern, DenseI64ArrayAttr:$members, DenseI32ArrayAttr:$files,
                       DenseI64ArrayAttr:$offsets, TypeAttrOf<Tensor>:$type);
  let assemblyFormat = "$sym_name $pattern `members` $members `files` $files `offsets` $offsets attr-dict `:` $type";
  let extraClassDeclaration = [{
    bool hasExperts();    // the type's leading dimension counts experts
    int64_t getExperts(); // 1 without experts
  }];
  let hasVerifier = 1;
}

def NN_StackOp : NN_Op<"stack", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "declares a weight as kernels read it: tensors side by side, one member a layer";
  let description = [{
    The rows of the parts (nn.tensor symbols with the same members) follow each other, or alternate in groups of `interleave`
    rows. `rows[i]` rows of part i are used, counted from 0; a vector's rows are its elements. With a leading expert
    dimension this holds for each expert.

    With a `shard` the ranks of an axis share out the rows or columns of each part, or the experts: type and `rows` are the share of a
    rank, coordinate c holds what begins at c times the share, and what is past the end of a tensor is zero.

    ```mlir
    nn.stack @stack.self_attn.qkv_proj [@self_attn.q_proj, @self_attn.k_proj, @self_attn.v_proj] rows [256, 256, 256] : tensor<768x192xbf16>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<FlatSymbolRefAttr, "symbols of tensors">:$parts,
                       DenseI64ArrayAttr:$rows, DefaultValuedAttr<I64Attr, "0">:$interleave,
                       OptionalAttr<Coll_Axis>:$shard_axis, OptionalAttr<Coll_ShardOf>:$shard_of, TypeAttrOf<Tensor>:$type);
  let assemblyFormat = [{
    $sym_name $parts `rows` $rows (`interleave` $interleave^)? (`shard` $shard_axis^ $shard_of)? attr-dict `:` $type
  }];
  let hasVerifier = 1;
}

def NN_MergedStackOp : NN_Op<"merged_stack", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "declares stacks whose members lie one behind the other, so that a product can read them as one weight";
  let description = [{
    Member i has the rows of member i of each stack, in order. Stacks have the same members, rank 2 and equal rows, and belong to
    one merged stack at most; each keeps its own shard, and ops may still read it alone.

    ```mlir
    nn.merged_stack @merged.self_attn.qkv_proj [@stack.self_attn.qkv_proj, @stack.self_attn.f_a_proj] : tensor<832x192xbf16>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<FlatSymbolRefAttr, "symbols of stacks">:$stacks,
                       TypeAttrOf<Tensor>:$type);
  let assemblyFormat = "$sym_name $stacks attr-dict `:` $type";
}

def NN_WeightOp : NN_Op<"weight", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a member of a weight stack, or of a merged one: the value has the stack's type";
  let arguments = (ins FlatSymbolRefAttr:$stack, Optional<Index>:$layer);
  let results = (outs Tensor:$result);
  let assemblyFormat = "$stack (`[` $layer^ `]`)? attr-dict `:` type($result)";
}

//===-- views ---------------------------------------------------------------------------------------------------------===//

def NN_ColumnsOp : NN_Op<"columns", [Pure, InferTypeOpAdaptor]> {
  let summary = "columns [begin, end) of [T, C], or elements of [C], a view: it costs nothing";
  let arguments = (ins Tensor:$source, I64Attr:$begin, I64Attr:$end);
  let results = (outs Tensor:$result);
  let assemblyFormat = "$source `[` $begin `:` $end `]` attr-dict `:` type($source)";
  let hasFolder = 1;
}

//===-- kernels -------------------------------------------------------------------------------------------------------===//

def NN_EmbedOp : NN_Op<"embed", [Pure]> {
  let summary = "out[t] = table[tokens[t]]: [T] and [V, H] to [T, H]";
  let arguments = (ins Tensor:$tokens, Tensor:$table, Live:$live);
  let results = (outs Tensor:$result);
  let assemblyFormat = "$tokens `in` $table `live` $live attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_LinearOp : NN_Op<"linear", [Pure]> {
  let summary = "epilogue(x W^T): [T, K] and [N, K] to [T, N], fp32 sums";
  let description = [{
    The epilogue is elementwise: its first argument is the sum, then one argument an extra operand, all f32. With `pair` the
    rows of W alternate in groups of 16 between two matrices (the stack's interleave), the region takes both sums first, and
    results have N / 2 columns. `fused` names what the epilogue came from.

    Without an epilogue several results share out the columns of the sums, one behind the other: products of the same rows as one,
    whose weights are a merged stack. All results but the last have a multiple of 16 columns, the kernels' vector.
  }];
  let arguments = (ins Tensor:$x, Tensor:$w, Live:$live, Variadic<Tensor>:$extras, UnitAttr:$pair,
                       OptionalAttr<StrArrayAttr>:$fused);
  let regions = (region AnyRegion:$epilogue);
  let results = (outs Variadic<Tensor>:$results);
  let assemblyFormat = [{
    $x `,` $w `live` $live (`extras` $extras^)? (`pair` $pair^)? (`fused` $fused^)? attr-dict-with-keyword
    (`epilogue` $epilogue^)? `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_HeadLinearOp : NN_Op<"head_linear", [Pure]> {
  let summary = "one matrix a head: out[t, h] = x[t, h] W[h]^T, or x[t, h] W[h] when transposed";
  let description = [{
    x is [T, heads * head_x] of which the first `in` values of each head are used; w is [heads * head_rows, C]; rows
    [row_begin, row_begin + R) of each head's block are its matrix W[h] of R x C. Result [T, heads * out]: plain, in = C and out = R; transposed,
    in = R and out = C.
  }];
  let arguments = (ins Tensor:$x, Tensor:$w, Live:$live, I64Attr:$heads, I64Attr:$row_begin, I64Attr:$row_count,
                       UnitAttr:$transposed);
  let results = (outs Tensor:$result);
  let assemblyFormat = [{
    $x `,` $w `live` $live `heads` $heads `rows` ` ` `[` $row_begin `,` $row_count `]` (`transposed` $transposed^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_MapOp : NN_Op<"map", [Pure]> {
  let summary = "elementwise region over [T, C]; operands broadcast by shape";
  let arguments = (ins Live:$live, Variadic<Tensor>:$inputs, StrArrayAttr:$fused);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Tensor>:$results);
  let assemblyFormat = "$fused `live` $live (`(` $inputs^ `)`)? attr-dict-with-keyword $body `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_RowOp : NN_Op<"row", [Pure]> {
  let summary = "row-wise region over [T, C] with sums over the row, or over each of `groups` column groups";
  let description = [{
    Norms and residual mixes. `nn.sum` inside the region adds a value over the row (or group); what depends only on sums is a
    row value. Sums may depend on earlier sums.
  }];
  let arguments = (ins Live:$live, Variadic<Tensor>:$inputs, StrArrayAttr:$fused, DefaultValuedAttr<I64Attr, "1">:$groups);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Tensor>:$results);
  let assemblyFormat = [{
    $fused `live` $live (`groups` $groups^)? `(` $inputs `)` attr-dict-with-keyword $body `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NN_SumOp : NN_Op<"sum", [Pure, SameOperandsAndResultType]> {
  let summary = "inside nn.row (or what is made of it: coll.sum_row, attn.kda_decode, plan.kernel): the sum of a value over the row or column group";
  let arguments = (ins F32:$value);
  let results = (outs F32:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the values of a fused region, one a result of the op";
  let arguments = (ins Variadic<F32>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def NN_GatherOp : NN_Op<"gather", [Pure]> {
  let summary = "chosen rows: [T, C] and [L] to [L, C]; live counts the result's rows";
  let arguments = (ins Tensor:$source, Tensor:$index, Live:$live);
  let results = (outs Tensor:$result);
  let assemblyFormat = "$source `at` $index `live` $live attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def NN_SampleOp : NN_Op<"sample", [Pure, AttrSizedOperandSegments]> {
  let summary = "one id a logit row: fp32 [L, V] and parameters [L, 24] bytes to i32 [L]";
  let description = [{
    Parameters of a row: temperature f32 (0 is greedy), top_p f32, seed u64, counter u64. An optional mask [L, V] (ui8, 1
    allows) and bias [L, V] (f32) come together.
  }];
  let arguments = (ins Tensor:$logits, Tensor:$params, Optional<Tensor>:$mask, Optional<Tensor>:$bias, Live:$live);
  let results = (outs Tensor:$result);
  let assemblyFormat = [{
    $logits `params` $params (`mask` $mask^ `bias` $bias)? `live` $live attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}
#endif
