#ifndef K31_COLL_DIALECT_TD
#define K31_COLL_DIALECT_TD
include "mlir/IR/DialectBase.td"

def Coll_Dialect : Dialect {
  let name = "coll";
  let cppNamespace = "::k31::coll";
  let summary = "Whatever needs another rank";
  let description = [{
    Level 2. Ops name the mesh axis they work over and its size; shapes are per rank. An op over an axis of size 1 folds to its
    operand. What a rank does around them is here too, as kernels: its columns and rows, and the pieces of an exchange. Dispatch and
    combine have a static capacity of rows; how many are live is device data.
  }];
  let dependentDialects = ["::k31::nn::NNDialect"]; // regions of coll.sum_row
}
#endif
