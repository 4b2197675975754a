// A map that is the only reader of a product or convolution runs on its sums before they are stored.
#include "codegen/kernels/common/row_operand.h"
#include "compiler/Transforms/FusedRegion.h"
#include "compiler/Transforms/Fusions.h"
#include "dialects/Attn/Attn.h"
#include "dialects/Moe/Moe.h"

using namespace mlir;

namespace k31 {
namespace {

// The epilogue of `op` followed by the map. Sums of the op come first, its own extra operands next.
void buildEpilogue(FusedRegion &fused, Region &epilogue, int sumCount, ValueRange extras, Value result, nn::MapOp map) {
  SmallVector<Value> sums;
  for (int i = 0; i < sumCount; ++i)
    sums.push_back(fused.addSum());
  Value stored = sums[0];
  if (!epilogue.empty()) {
    SmallVector<Value> arguments = sums;
    for (Value extra : extras)
      arguments.push_back(fused.argument(extra));
    stored = fused.copy(epilogue, arguments)[0];
  }
  SmallVector<Value> arguments;
  for (Value input : map.getInputs())
    arguments.push_back(input == result ? stored : fused.argument(input));
  fused.yield(fused.copy(map.getBody(), arguments));
}

bool onlyReader(Value result, nn::MapOp map) {
  return isa<RankedTensorType>(result.getType()) &&
         cast<RankedTensorType>(result.getType()).getShape() == cast<RankedTensorType>(map.getResult(0).getType()).getShape() &&
         llvm::all_of(result.getUsers(), [&](Operation *user) { return user == map; }) && result != map.getLive();
}

bool intoLinear(nn::LinearOp linear, nn::MapOp map) {
  if (linear->getNumResults() != 1 || linear.getLive() != map.getLive() || !onlyReader(linear.getResults()[0], map) ||
      linear->getBlock() != map->getBlock())
    return false;
  FusedRegion fused(linear.getLoc());
  buildEpilogue(fused, linear.getEpilogue(), linear.getPair() ? 2 : 1, linear.getExtras(), linear.getResults()[0], map);
  if (fused.operands().size() > static_cast<size_t>(kernels::kMaxOperands) || map->getNumResults() > kernels::kMaxOperands)
    return false;
  OpBuilder b(map); // the map's other operands are known here
  auto op = nn::LinearOp::create(b, linear.getLoc(), map.getResultTypes(), linear.getX(), linear.getW(), linear.getLive(),
                                 fused.operands(), linear.getPairAttr(),
                                 joinFused(b.getContext(), {linear.getFusedAttr(), map.getFusedAttr()}));
  op.getEpilogue().takeBody(fused.get());
  noteFusion(op, linear, map, linear.getResults()[0]);
  map.replaceAllUsesWith(op.getResults());
  map.erase();
  linear.erase();
  return true;
}

// Rows of a convolution are those of its batch; a map over its result reads no others.
bool runsOn(attn::ShortConvOp, Value) { return true; }
bool runsOn(moe::GroupedLinearOp grouped, Value live) { return isRowsOfExperts(grouped.getOffsets(), live); }

// Ops whose epilogue takes nothing but sums. They stay in their place, in the order of their cache's reads and writes.
template <class Op> bool intoPlain(Op op, int sumCount, nn::MapOp map) {
  Value result = op.getResult();
  if (!onlyReader(result, map) || map->getNumResults() != 1 || !runsOn(op, map.getLive()) ||
      llvm::any_of(map.getInputs(), [&](Value v) { return v != result; }))
    return false;
  FusedRegion fused(op.getLoc());
  buildEpilogue(fused, op.getEpilogue(), sumCount, {}, result, map);
  OpBuilder b(op);
  ArrayAttr names = joinFused(b.getContext(), {op.getFusedAttr(), map.getFusedAttr()});
  Op created;
  if constexpr (std::is_same_v<Op, moe::GroupedLinearOp>)
    created = Op::create(b, op.getLoc(), map.getResultTypes()[0], op.getX(), op.getW(), op.getScale(), op.getOffsets(),
                         op.getPairAttr(), names);
  else
    created = Op::create(b, op.getLoc(), map.getResultTypes()[0], op.getX(), op.getW(), op.getCache(), op.getBatch(), names);
  created.getEpilogue().takeBody(fused.get());
  noteFusion(created, op, map, result);
  map.replaceAllUsesWith(created->getResults());
  map.erase();
  op.erase();
  return true;
}

bool fuseOne(nn::MapOp map) {
  // The nearest producer first: moving it down to the map moves it least.
  SmallVector<Operation *> producers;
  for (Value input : map.getInputs())
    if (Operation *producer = input.getDefiningOp(); producer && producer->getBlock() == map->getBlock())
      producers.push_back(producer);
  llvm::stable_sort(producers, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  for (Operation *producer : producers) {
    bool done = false;
    if (auto linear = dyn_cast<nn::LinearOp>(producer))
      done = intoLinear(linear, map);
    else if (auto grouped = dyn_cast<moe::GroupedLinearOp>(producer))
      done = intoPlain(grouped, grouped.getPair() ? 2 : 1, map);
    else if (auto conv = dyn_cast<attn::ShortConvOp>(producer))
      done = intoPlain(conv, 1, map);
    if (done)
      return true;
  }
  return false;
}

} // namespace

void fuseEpilogues(ModuleOp module) {
  SmallVector<nn::MapOp> maps; // in program order: a chain of maps goes in one by one
  module.walk([&](nn::MapOp map) { maps.push_back(map); });
  for (nn::MapOp map : maps)
    fuseOne(map);
}

} // namespace k31
