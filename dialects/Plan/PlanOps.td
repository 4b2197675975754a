#ifndef K31_PLAN_OPS_TD
#define K31_PLAN_OPS_TD
include "dialects/Plan/PlanDialect.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Plan_Enum<string name, list<string> cases> : I32EnumAttr<name, "", !foldl([]<I32EnumAttrCase>, !range(!size(cases)), acc, i,
    !listconcat(acc, [I32EnumAttrCase<cases[i], i>]))> {
  let cppNamespace = "::k31::planir";
}
// The numbers equal those of plan.fbs.
def Plan_ArenaKind : Plan_Enum<"ArenaKind", ["weights", "cache", "state", "activations", "io", "workspace", "shared"]>;
def Plan_Access : Plan_Enum<"Access", ["read", "write", "update"]>;
def Plan_StateKind : Plan_Enum<"StateKind", ["latent", "index", "kda", "conv", "draft"]>;
def Plan_EntryKind : Plan_Enum<"EntryKind", ["prefill", "decode"]>;
def Plan_MeshAxis : Plan_Enum<"MeshAxis", ["none", "tp", "dp", "ep", "pp", "edp", "node", "rail"]>;
def Plan_ShardOf : Plan_Enum<"ShardOf", ["rows", "columns", "members"]>;
def Plan_CollectiveKind : Plan_Enum<"CollectiveKind", ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "dispatch",
                                                       "combine", "send", "recv"]>;
def Plan_Transport : Plan_Enum<"Transport", ["library", "peer"]>;

// check-plan looks at entries as a whole; verifiers at one op.
class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;
class Plan_Declaration<string mnemonic> : Plan_Op<mnemonic, [Symbol]>;
def Plan_Buffer : RankedTensorOf<[AnyType]>;

//===-- facts ---------------------------------------------------------------------------------------------------------===//

def Plan_KeyOp : Plan_Op<"key"> {
  let summary = "what the plan was made from";
  let arguments = (ins StrAttr:$compiler, StrAttr:$target, DictionaryAttr:$options, StrAttr:$checkpoint, StrAttr:$digest);
  let assemblyFormat = "$compiler `target` $target `options` $options `checkpoint` $checkpoint `digest` $digest attr-dict";
}

def Plan_MeshOp : Plan_Op<"mesh"> {
  let summary = "ranks along each axis";
  let arguments = (ins I32Attr:$tp, I32Attr:$dp, I32Attr:$ep, I32Attr:$pp, I32Attr:$node);
  let assemblyFormat = "`tp` $tp `dp` $dp `ep` $ep `pp` $pp `node` $node attr-dict";
  let hasVerifier = 1;
}

def Plan_ModelOp : Plan_Op<"model"> {
  let summary = "facts that the engine needs";
  let arguments = (ins StrAttr:$family, I32Attr:$layers, I32Attr:$layer_begin, I32Attr:$layer_end, I32Attr:$hidden, I32Attr:$vocab,
                       I32Attr:$max_context, I32Attr:$max_batch, DenseI32ArrayAttr:$eos, StrAttr:$activations, I64Attr:$reserve);
  let assemblyFormat = [{
    $family `layers` $layer_begin `to` $layer_end `of` $layers `hidden` $hidden `vocab` $vocab `max_context` $max_context
    `max_batch` $max_batch `eos` $eos `activations` $activations `reserve` $reserve attr-dict
  }];
}

def Plan_ArenaOp : Plan_Declaration<"arena"> {
  let summary = "one allocation of a rank";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_ArenaKind:$kind, I64Attr:$bytes, DefaultValuedAttr<I32Attr, "256">:$alignment);
  let assemblyFormat = "$sym_name $kind `bytes` $bytes (`alignment` $alignment^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_FileOp : Plan_Op<"file"> {
  let summary = "a file of the checkpoint";
  let arguments = (ins StrAttr:$file, I64Attr:$bytes);
  let assemblyFormat = "$file `bytes` $bytes attr-dict";
}

def Plan_WeightsOp : Plan_Op<"weights", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a weight stack: equal tensors and their places";
  let arguments = (ins StrAttr:$pattern, DenseI32ArrayAttr:$members, StrAttr:$dtype, DenseI64ArrayAttr:$shape,
                       DenseI32ArrayAttr:$files, DenseI64ArrayAttr:$offsets, FlatSymbolRefAttr:$arena, I64Attr:$dest, I64Attr:$stride,
                       I64Attr:$row_bytes, I64Attr:$row_begin, I64Attr:$row_count, I64Attr:$byte_begin, I64Attr:$byte_count,
                       I64Attr:$dest_row_bytes, I64Attr:$group, I64Attr:$group_stride, I64Attr:$group_begin,
                       OptionalAttr<Plan_MeshAxis>:$shard_axis, OptionalAttr<Plan_ShardOf>:$shard_of,
                       DefaultValuedAttr<I32Attr, "0">:$stage);
  let assemblyFormat = [{
    $pattern `members` $members $dtype $shape `in` $arena `at` $dest `stride` $stride `rows` ` ` `[` $row_begin `,` $row_count `]`
    `of` $row_bytes `bytes` ` ` `[` $byte_begin `,` $byte_count `]` `pitch` $dest_row_bytes
    `group` ` ` `[` $group `,` $group_stride `,` $group_begin `]` (`shard` $shard_axis^ $shard_of)? (`stage` $stage^)? `files` $files `offsets` $offsets attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_StateOp : Plan_Op<"state"> {
  let summary = "the state group: block and slot counts";
  let arguments = (ins I32Attr:$block_tokens, I32Attr:$blocks, I32Attr:$slots);
  let assemblyFormat = "`block_tokens` $block_tokens `blocks` $blocks `slots` $slots attr-dict";
  let hasVerifier = 1;
}

def Plan_StateMemberOp : Plan_Op<"state_member", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one cache of one layer";
  let arguments = (ins Plan_StateKind:$kind, I32Attr:$layer, FlatSymbolRefAttr:$arena, I64Attr:$offset, I64Attr:$unit_bytes,
                       I32Attr:$units, DefaultValuedAttr<I32Attr, "0">:$stage, DefaultValuedAttr<I32Attr, "0">:$codes);
  let assemblyFormat = [{
    $kind `layer` $layer `in` $arena `at` $offset `unit` $unit_bytes `units` $units (`stage` $stage^)? (`codes` $codes^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_ImageOp : Plan_Declaration<"image"> {
  let summary = "machine code for a target with some features";
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$target, StrArrayAttr:$features, StrAttr:$code);
  let assemblyFormat = "$sym_name $target `features` $features `code` $code attr-dict";
}

def Plan_KernelOp : Plan_Op<"kernel", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel: what it was specialised to, its symbol and images";
  let description = [{
    Before `compile-kernels`: `spec` holds the kernel's name and Config fields, `bodies` the fused regions of the op, symbol and
    images are empty. After it: symbol and images, `spec` and bodies are gone, `config` keeps the fields as text.
    `args`: what a launch's arguments are, as tensor<? x columns x element>; codes narrower than a byte are ui8.
    `starts_early` (CUDA): it waits by itself for the launches before it, so it may start while they end.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$name, StrAttr:$symbol,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "symbols of images">:$images, StrAttr:$config,
                       OptionalAttr<DictionaryAttr>:$spec, OptionalAttr<TypeArrayAttr>:$arg_types, UnitAttr:$starts_early);
  let regions = (region VariadicRegion<AnyRegion>:$bodies);
  let assemblyFormat = [{
    $sym_name $name `symbol` $symbol `images` $images `config` $config (`spec` $spec^)? (`args` $arg_types^)?
    (`starts_early` $starts_early^)? attr-dict-with-keyword ($bodies^)?
  }];
  let hasVerifier = 1;
}

def Plan_NoteOp : Plan_Declaration<"note"> {
  let summary = "what the compiler chose, and why: for people";
  let description = [{
    `candidates` are the choices that were compared, with estimated times in nanoseconds, `choice` among them; both lists are empty
    when nothing was compared.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$about, StrAttr:$choice, StrAttr:$reason,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$candidates, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$nanoseconds);
  let assemblyFormat = [{
    $sym_name $about $choice `because` $reason (`among` $candidates^ `nanoseconds` $nanoseconds)? attr-dict
  }];
  let hasVerifier = 1;
}

//===-- entries -------------------------------------------------------------------------------------------------------===//

def Plan_EntryOp : Plan_Op<"entry", [Symbol, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "one program: a bucket of rows and segments";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_EntryKind:$kind, I32Attr:$rows, I32Attr:$segments, I32Attr:$logit_rows,
                       I32Attr:$stage, I32Attr:$streams, I32Attr:$events);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name $kind `rows` $rows `segments` $segments `logit_rows` $logit_rows `stage` $stage `streams` $streams `events` $events
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Plan_SliceOp : Plan_Op<"slice", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a range of an arena, as many bytes as the type has";
  let arguments = (ins FlatSymbolRefAttr:$arena, I64Attr:$offset);
  let results = (outs Plan_Buffer:$result);
  let assemblyFormat = "$arena `at` $offset attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Plan_AllocOp : Plan_Op<"alloc", [MemoryEffects<[MemAlloc]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "memory of an arena that has no offset yet";
  let arguments = (ins FlatSymbolRefAttr:$arena);
  let results = (outs Plan_Buffer:$result);
  let assemblyFormat = "$arena attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Plan_ViewOp : Plan_Op<"view", [Pure]> {
  let summary = "a part of a buffer, `offset` bytes after its start";
  let arguments = (ins Plan_Buffer:$source, I64Attr:$offset);
  let results = (outs Plan_Buffer:$result);
  let assemblyFormat = "$source `at` $offset attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

class Plan_Bind<string mnemonic, string text> : Plan_Op<mnemonic> {
  let summary = text;
  let arguments = (ins StrAttr:$name, Plan_Buffer:$buffer);
  let assemblyFormat = "$name $buffer attr-dict `:` type($buffer)";
}
def Plan_InputOp : Plan_Bind<"input", "a tensor that the engine writes before a run">;
def Plan_OutputOp : Plan_Bind<"output", "a tensor that the engine reads after a run">;

//===-- commands ------------------------------------------------------------------------------------------------------===//

def Plan_LaunchOp : Plan_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one kernel; each argument is read, written or updated";
  let description = [{
    `maps`: tensor maps (CUDA), dictionaries of the integers `arg`, `columns`, `rows`, `row_bytes`, `box_columns`, `box_rows` and the
    string `dtype`; they stand from byte `maps_at` of the argument block on.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, I32Attr:$stream, DenseI32ArrayAttr:$grid, DefaultValuedAttr<I32Attr, "1">:$block,
                       DefaultValuedAttr<I32Attr, "0">:$smem, Variadic<Plan_Buffer>:$args, DenseI32ArrayAttr:$access,
                       OptionalAttr<StrAttr>:$label, OptionalAttr<DictArrayAttr>:$maps, DefaultValuedAttr<I32Attr, "0">:$maps_at);
  let assemblyFormat = [{
    $kernel `on` $stream `grid` $grid (`block` $block^)? (`smem` $smem^)? custom<LaunchArgs>($args, type($args), $access)
    ($label^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_CollectiveOp : Plan_Op<"collective", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one collective over a mesh axis, at its capacity";
  let description = [{
    `live` of a dispatch or combine: i32, one a rank of the axis. Of the piece for rank r the first live[r] times `unit` bytes hold
    rows.
    `by` (transport peer): the kernel that does it, launched with source, live, destination and `area`, memory of the arena of kind
    shared that holds the peers' addresses, flags and what they write. `with` (of sums): what else the kernel reads and writes, the
    live rows, operands and results of the row op on the sum; they stand in front of the area.
  }];
  let arguments = (ins Plan_CollectiveKind:$kind, Plan_MeshAxis:$axis, Plan_Transport:$transport, StrAttr:$dtype, I64Attr:$count,
                       Plan_Buffer:$source, Plan_Buffer:$dest, Optional<Plan_Buffer>:$live, Optional<Plan_Buffer>:$area,
                       DefaultValuedAttr<I64Attr, "0">:$unit, DefaultValuedAttr<I32Attr, "0">:$peer, I32Attr:$stream,
                       OptionalAttr<StrAttr>:$label, OptionalAttr<FlatSymbolRefAttr>:$kernel, OptionalAttr<DenseI32ArrayAttr>:$grid,
                       DefaultValuedAttr<I32Attr, "1">:$block, DefaultValuedAttr<I32Attr, "0">:$smem, Variadic<Plan_Buffer>:$more,
                       DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$access);
  let assemblyFormat = [{
    $kind `over` $axis `via` $transport $dtype `count` $count $source `to` $dest
    (`live` $live^ `:` type($live) `unit` $unit)? (`by` $kernel^ `grid` $grid `block` $block `smem` $smem)?
    (`in` $area^ `:` type($area))? custom<MoreArgs>($more, type($more), $access) (`peer` $peer^)? `on` $stream ($label^)? attr-dict
    `:` type($source) `to` type($dest)
  }];
  let hasVerifier = 1;
}

def Plan_CopyOp : Plan_Op<"copy"> {
  let summary = "bytes from one buffer to another";
  let arguments = (ins Plan_Buffer:$source, Plan_Buffer:$dest, I32Attr:$stream, OptionalAttr<StrAttr>:$label);
  let assemblyFormat = "$source `to` $dest `on` $stream ($label^)? attr-dict `:` type($source) `to` type($dest)";
  let hasVerifier = 1;
}

def Plan_RecordOp : Plan_Op<"record"> {
  let summary = "marks an event after everything before it on the stream";
  let arguments = (ins I32Attr:$event, I32Attr:$stream);
  let assemblyFormat = "$event `on` $stream attr-dict";
  let hasVerifier = 1;
}

def Plan_WaitOp : Plan_Op<"wait"> {
  let summary = "the stream goes on after the event";
  let arguments = (ins I32Attr:$event, I32Attr:$stream);
  let assemblyFormat = "$event `on` $stream attr-dict";
  let hasVerifier = 1;
}
#endif
