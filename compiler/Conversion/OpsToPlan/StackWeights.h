// One nn.stack as plan.weights.
#pragma once
#include "compiler/Conversion/OpsToPlan/OpsToPlan.h"
#include "mlir/IR/SymbolTable.h"

namespace k31::to_plan {

// Where members lie: the first at `begin`, one each `stride` bytes, the rows of this stack behind `rowsBefore` rows of others.
struct MembersAt {
  int64_t begin, stride, rowsBefore;
};

// Declares the parts of a stack and says where it is. `layers`: the members that the stage needs, all when empty.
mlir::FailureOr<Place> buildStack(nn::StackOp stack, mlir::SymbolTable &symbols, mlir::OpBuilder &builder, int64_t stage,
                                  const std::set<int64_t> &layers, MembersAt at);

} // namespace k31::to_plan
