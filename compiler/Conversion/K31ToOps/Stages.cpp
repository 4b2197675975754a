#include "compiler/Conversion/K31ToOps/Stages.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace k31 {

StageCuts::StageCuts(func::FuncOp text, int64_t count) : borders(count) {
  const int64_t layers = llvm::range_size(text.getOps<func::CallOp>());
  int64_t stage = 0, called = 0;
  for (Operation &op : text.getBody().front()) {
    if (isa<func::CallOp>(op)) {
      while (called >= (stage + 1) * layers / count)
        ++stage;
      ++called;
    }
    stages[&op] = stage;
  }

  auto cross = [&](Value value, int64_t made) {
    auto rows = dyn_cast<RankedTensorType>(value.getType());
    if (!rows || !isa<FloatType>(rows.getElementType()))
      return; // layer numbers, ids and choices of rows are inputs of every stage that needs them
    int64_t last = made;
    for (Operation *user : value.getUsers())
      last = std::max(last, stages.lookup(user));
    for (int64_t border = made + 1; border <= last; ++border)
      borders[border].push_back(value);
  };
  for (BlockArgument argument : text.getArguments())
    cross(argument, 0);
  for (Operation &op : text.getBody().front())
    for (Value result : op.getResults())
      cross(result, stages.lookup(&op));
}

} // namespace k31
