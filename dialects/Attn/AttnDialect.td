#ifndef K31_ATTN_DIALECT_TD
#define K31_ATTN_DIALECT_TD
include "mlir/IR/DialectBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::k31::attn";
  let summary = "Attention: caches, their effects, and what reads and writes them";
  let description = [{
    Level 2. A cache is a handle: ops declare whether they read or write it, so the order between an append and a read is kept
    by MLIR's own rules. A batch describes the segments of the entry: which rows belong to which sequence, where they start,
    which state slots they read and write, and where their pages are.
  }];
  let useDefaultTypePrinterParser = 1;
}
#endif
