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
// Same shape in and out over `size` ranks of `axis`; folds to the operand when size is 1. `via peer`: a kernel of the plan does it,
// where one is there for the op; select-kernels decides.
class Coll_Resize<string mnemonic, string text> : Coll_Op<mnemonic, [Pure, InferTypeOpAdaptor]> {
  let summary = text;
  let arguments = (ins AnyRankedTensor:$x, Coll_Axis:$axis, I64Attr:$size,
                       DefaultValuedAttr<Coll_Transport, "::k31::coll::Transport::library">:$transport);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `over` $axis `size` $size (`via` $transport^)? attr-dict `:` type($x)";
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

def Coll_OwnRowsOp : Coll_Op<"own_rows", [Pure, InferTypeOpAdaptor]> {
  let summary = "the rows of this rank: [T, N] to [T / size, N] from row coordinate T / size on, and how many of them live";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$live, AnyRankedTensor:$coordinate, I64Attr:$size);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$own_live);
  let assemblyFormat = "$x `live` $live `at` $coordinate `size` $size attr-dict `:` type($x) `,` type($live) `,` type($coordinate)";
  let hasVerifier = 0; // the inference of the results checks it
}

def Coll_PackOp : Coll_Op<"pack", [Pure]> {
  let summary = "rows and their choices into a piece for each rank that one of the choices is held by: [T, C] to [size, bytes]";
  let description = [{
    Rank d of `size` holds experts [d share, (d + 1) share). With a `coordinate` (i32 [1], on axis ep) the ranks are those of the
    host, which begin at expert coordinate / size * size * share. A row goes into a piece once; a piece has room for all T rows, so
    none is ever left out. `slot` [T, size]: where the row is among the T rows of each piece, one piece behind the other, -1 where it
    is not; moe.combine adds up by it what coll.combine brings back. `units` [size]: 16 bytes of each piece that hold rows. `live` may hold several counts, as in moe.permute. codegen/kernels/coll/piece.h has the form of a
    piece.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$ids, AnyRankedTensor:$weights, AnyRankedTensor:$live,
                       Optional<AnyRankedTensor>:$coordinate, I64Attr:$size, I64Attr:$share);
  let results = (outs AnyRankedTensor:$pieces, AnyRankedTensor:$units, AnyRankedTensor:$slot);
  let assemblyFormat = [{
    $x `by` $ids `,` $weights `live` $live (`at` $coordinate^)? `size` $size `share` $share attr-dict
    `:` functional-type(operands, results)
  }];
}

def Coll_UnpackOp : Coll_Op<"unpack", [Pure]> {
  let summary = "pieces [size, bytes] to rows [size T, C], ids and weights [size T, k], and the rows of each piece, live [size]";
  let arguments = (ins AnyRankedTensor:$pieces);
  let results = (outs AnyRankedTensor:$rows, AnyRankedTensor:$ids, AnyRankedTensor:$weights, AnyRankedTensor:$live);
  let assemblyFormat = "$pieces attr-dict `:` functional-type(operands, results)";
}

// Piece d of x goes to coordinate d; piece s of the result came from coordinate s. The first live[d] x unit bytes of piece d count.
class Coll_Exchange<string mnemonic, string text> : Coll_Op<mnemonic, [Pure, InferTypeOpAdaptor]> {
  let summary = text;
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$live, Coll_Axis:$axis, I64Attr:$size, I64Attr:$unit,
                       DefaultValuedAttr<Coll_Transport, "::k31::coll::Transport::library">:$transport);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $x `live` $live `over` $axis `size` $size `unit` $unit (`via` $transport^)? attr-dict `:` type($x) `,` type($live)
  }];
  let hasVerifier = 0; // the inference of the result checks it
}
def Coll_DispatchOp : Coll_Exchange<"dispatch", "pieces of rows to the ranks of their experts: [size, bytes] to [size, bytes]">;
def Coll_CombineOp : Coll_Exchange<"combine", "results back to the ranks that sent the rows: [size T, C] to [size T, C]">;

def Coll_SumRowOp : Coll_Op<"sum_row", [Pure]> {
  let summary = "the sum over the ranks and the nn.row or nn.map that reads it, in one kernel: [T, C] to the sum and the row's results";
  let description = [{
    An all_reduce by peer, or with `scatter` a reduce_scatter ([T, C] to a share of T / size rows), and the region of a row op on it.
    `sum` holds all rows of what it stands for; the results are those of the live rows. The region has an argument for each of
    `inputs` and, as number `at`, one for the sum; `groups` and `fused` are those of nn.row. select-kernels makes it; over one rank it
    becomes the row op.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$live, Variadic<AnyRankedTensor>:$inputs, Coll_Axis:$axis, I64Attr:$size,
                       UnitAttr:$scatter, I64Attr:$at, StrArrayAttr:$fused, DefaultValuedAttr<I64Attr, "1">:$groups);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs AnyRankedTensor:$sum, Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $fused `of` $x `over` $axis `size` $size (`scatter` $scatter^)? `at` $at `live` $live (`groups` $groups^)? `(` $inputs `)`
    attr-dict-with-keyword $body `:` functional-type(operands, results)
  }];
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    // The operands of the row op: the inputs, and the sum as number `at`.
    ::llvm::SmallVector<::mlir::Value> rowInputs();
  }];
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
