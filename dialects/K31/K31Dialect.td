#ifndef K31_K31_DIALECT_TD
#define K31_K31_DIALECT_TD
include "mlir/IR/DialectBase.td"

def K31_Dialect : Dialect {
  let name = "k31";
  let cppNamespace = "::k31::model";
  let summary = "The model as published";
  let description = [{
    Level 1: names of the paper and the checkpoint, global shapes, the number of tokens dynamic. A layer body is a function of the
    layer's number, the residual sources and the running prefix; bodies are shared by all layers that compute the same.
    Weights are symbols of `nn.tensor` ops, gathered in the dictionary `weights` under their checkpoint names.

    The dialect also owns the module's facts: `k31.model` and `k31.checkpoint` (from the import), `k31.options` and `k31.mesh`.
  }];
  let useDefaultAttributePrinterParser = 1;
}
#endif
