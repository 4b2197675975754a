#ifndef K31_COLL_OPS_TD
#define K31_COLL_OPS_TD
include "dialects/Coll/CollDialect.td"
include "dialects/Coll/CollMesh.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Coll_Op<string mnemonic, list<Trait> traits = []> : Op<Coll_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}
// Same shape in and out over `size` ranks of `axis`; folds to the operand when size is 1.
class Coll_Resize<string mnemonic, string text> : Coll_Op<mnemonic, [Pure, InferTypeOpAdaptor]> {
  let summary = text;
  let arguments = (ins AnyRankedTensor:$x, Coll_Axis:$axis, I64Attr:$size);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `over` $axis `size` $size attr-dict `:` type($x)";
  let hasFolder = 1;
  let hasVerifier = 0; // the inference of the result checks it
}

def Coll_AllReduceOp : Coll_Resize<"all_reduce", "sum over the ranks: [T, C] to [T, C] on every rank">;
def Coll_ReduceScatterOp : Coll_Resize<"reduce_scatter", "sum, then a share of the rows: [T, C] to [T / size, C]">;
def Coll_AllGatherOp : Coll_Resize<"all_gather", "the rows of all ranks: [T, C] to [T size, C]">;
def Coll_BroadcastOp : Coll_Resize<"broadcast", "the rows of coordinate 0: [T, C] to [T, C]">;

def Coll_JoinOp : Coll_Op<"join", [Pure]> {
  let summary = "columns of the ranks side by side: gathered rows [size T, C] to [T, N], N at most size C";
  let description = [{
    Local work behind an all_gather of parts of columns: row s T + t of x is the part of coordinate s of row t. The last part may
    be longer than what is left of N.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$live, I64Attr:$size);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `live` $live `size` $size attr-dict `:` functional-type(operands, results)";
}

def Coll_PartOp : Coll_Op<"part", [Pure]> {
  let summary = "the columns of this rank: [T, N] to [T, C], from column coordinate C on, zeros past the last";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$live, AnyRankedTensor:$coordinate);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `live` $live `at` $coordinate attr-dict `:` functional-type(operands, results)";
}

def Coll_RowsOp : Coll_Op<"rows", [Pure]> {
  let summary = "the rows of this rank: [T, C] to [T / ranks, C], from row coordinate T / ranks on; live: those of the result";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$live, AnyRankedTensor:$coordinate);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `live` $live `at` $coordinate attr-dict `:` functional-type(operands, results)";
}

def Coll_DispatchOp : Coll_Op<"dispatch", [Pure]> {
  let summary = "rows to the ranks of their experts: [T, C], ids [T, k] to rows [capacity, C], ids [capacity, k], source [capacity]";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$ids, Coll_Axis:$axis, I64Attr:$size, I64Attr:$capacity,
                       DefaultValuedAttr<Coll_Transport, "::k31::coll::Transport::library">:$transport);
  let results = (outs AnyRankedTensor:$rows, AnyRankedTensor:$row_ids, AnyRankedTensor:$source);
  let assemblyFormat = [{
    $x `by` $ids `over` $axis `size` $size `capacity` $capacity (`via` $transport^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Coll_CombineOp : Coll_Op<"combine", [Pure]> {
  let summary = "partial results back to the ranks of their tokens, summed: [capacity, C], source [capacity] to [T, C]";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$source, Coll_Axis:$axis, I64Attr:$size,
                       DefaultValuedAttr<Coll_Transport, "::k31::coll::Transport::library">:$transport);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `from` $source `over` $axis `size` $size (`via` $transport^)? attr-dict `:` functional-type(operands, results)";
}

def Coll_SendOp : Coll_Op<"send"> {
  let summary = "rows to a neighbour on the axis: the next pipeline stage";
  let arguments = (ins AnyRankedTensor:$x, Coll_Axis:$axis, I64Attr:$peer);
  let assemblyFormat = "$x `to` $peer `over` $axis attr-dict `:` type($x)";
}

def Coll_RecvOp : Coll_Op<"recv"> {
  let summary = "rows from a neighbour on the axis";
  let arguments = (ins Coll_Axis:$axis, I64Attr:$peer);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`from` $peer `over` $axis attr-dict `:` type($result)";
}
#endif
