#ifndef K31_PLAN_DIALECT_TD
#define K31_PLAN_DIALECT_TD
include "mlir/IR/DialectBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::k31::planir";
  let summary = "What the device is told to do";
  let hasOperationAttrVerify = 1;
  let description = [{
    Level 3, the mirror of `runtime/schema/plan.fbs`: one op is one table with the same field names. `plan.alloc` and `plan.view`
    stand for memory without an offset; `assign-memory` turns them into `plan.slice`, and `check-plan` refuses what is left.

    Launches, collectives and entries may carry `plan.notes = [@note.0, ...]`, symbols of `plan.note`: why they are as they are.
  }];
}
#endif
