#ifndef K31_ATTN_TYPES_TD
#define K31_ATTN_TYPES_TD
include "dialects/Attn/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Attn_CacheKind : I32EnumAttr<"CacheKind", "what a cache holds", [
  I32EnumAttrCase<"latent", 0>, I32EnumAttrCase<"index", 1>, I32EnumAttrCase<"kda", 2>, I32EnumAttrCase<"conv", 3>]> {
  let cppNamespace = "::k31::attn";
}
def Attn_CacheSharding : I32EnumAttr<"CacheSharding", "how the ranks of a group share a cache", [
  I32EnumAttrCase<"replicated", 0>, I32EnumAttrCase<"paged", 1>]> {
  let cppNamespace = "::k31::attn";
}

def Attn_CacheType : TypeDef<Attn_Dialect, "Cache"> {
  let mnemonic = "cache";
  let summary = "a pool of cache units of one layer";
  let description = [{
    `shape` is one unit. Paged kinds: a block of [256, width] rows (latent: width = latent + shared; index: width = head_dim).
    Slotted kinds: kda [heads, key, value], conv [taps - 1, channels].
    Paged kinds may hold 8-bit codes. latent, f8E4M3FN: a row is `codes` codes, an fp32 scale for each 128 of them, which is a power
    of two and brings them within 448, and the other values as bf16; `codes` is a multiple of 4, the number of the others even.
    index, i8: a block is 256 rows of integers within 127, then 256 fp32 scales.
  }];
  let parameters = (ins EnumParameter<Attn_CacheKind>:$kind, ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$element,
                        DefaultValuedParameter<"int64_t", "0">:$codes,
                        DefaultValuedParameter<"::k31::attn::CacheSharding", "::k31::attn::CacheSharding::replicated">:$sharding);
  let assemblyFormat = "`<` $kind `,` `[` $shape `]` `,` $element (`codes` $codes^)? (`,` $sharding^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isPaged() const { return getKind() == CacheKind::latent || getKind() == CacheKind::index; }
    bool hasCodes() const;            // f8E4M3FN, i8
    int64_t getRowCodes() const;      // codes of a row, 0: plain values
    int64_t getUnitBytes() const;
    // One unit as it is stored: bytes when it has codes.
    ::mlir::RankedTensorType getStored(int64_t units) const;
  }];
}

def Attn_BatchType : TypeDef<Attn_Dialect, "Batch"> {
  let mnemonic = "batch";
  let summary = "segments of an entry: capacities in rows, segments and blocks of a sequence";
  let parameters = (ins "int64_t":$rows, "int64_t":$segments, "int64_t":$blocks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
#endif
