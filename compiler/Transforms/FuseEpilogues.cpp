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

// Why the map cannot run on the result before it is stored; null when it can. Fusions return the same once they are made.
using Refusal = const char *;

Refusal readBy(Value result, nn::MapOp map) {
  auto shape = [](Value v) { return cast<RankedTensorType>(v.getType()).getShape(); };
  if (!isa<RankedTensorType>(result.getType()) || shape(result) != shape(map.getResult(0)))
    return "its result has another shape";
  if (!llvm::all_of(result.getUsers(), [&](Operation *user) { return user == map; }) || result == map.getLive())
    return "others read the value in between, so that it has to be stored";
  return nullptr;
}

Refusal intoLinear(nn::LinearOp linear, nn::MapOp map) {
  if (linear->getNumResults() != 1)
    return "the product has several results already";
  if (linear.getLive() != map.getLive())
    return "the two count different live rows";
  if (Refusal why = readBy(linear.getResults()[0], map))
    return why;
  FusedRegion fused(linear.getLoc());
  buildEpilogue(fused, linear.getEpilogue(), linear.getPair() ? 2 : 1, linear.getExtras(), linear.getResults()[0], map);
  if (fused.operands().size() > static_cast<size_t>(kernels::kMaxOperands) || map->getNumResults() > kernels::kMaxOperands)
    return "an epilogue has at most 24 operands and as many results";
  OpBuilder b(map); // the map's other operands are known here
  auto op = nn::LinearOp::create(b, linear.getLoc(), map.getResultTypes(), linear.getX(), linear.getW(), linear.getLive(),
                                 fused.operands(), linear.getPairAttr(),
                                 joinFused(b.getContext(), {linear.getFusedAttr(), map.getFusedAttr()}));
  op.getEpilogue().takeBody(fused.get());
  noteFusion(op, linear, map, linear.getResults()[0]);
  map.replaceAllUsesWith(op.getResults());
  map.erase();
  linear.erase();
  return nullptr;
}

// Rows of a convolution are those of its batch; a map over its result reads no others.
bool runsOn(attn::ShortConvOp, Value) { return true; }
bool runsOn(moe::GroupedLinearOp grouped, Value live) { return isRowsOfExperts(grouped.getOffsets(), live); }

// Ops whose epilogue takes nothing but sums. They stay in their place, in the order of their cache's reads and writes.
template <class Op> Refusal intoPlain(Op op, int sumCount, nn::MapOp map) {
  Value result = op.getResult();
  if (Refusal why = readBy(result, map))
    return why;
  if (!runsOn(op, map.getLive()))
    return "the two count different live rows";
  if (map->getNumResults() != 1 || llvm::any_of(map.getInputs(), [&](Value v) { return v != result; }))
    return "its epilogue takes sums alone, no further operands or results";
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
  return nullptr;
}

void fuseOne(nn::MapOp map) {
  // The nearest producer first: moving it down to the map moves it least.
  SmallVector<Operation *> producers;
  for (Value input : map.getInputs())
    if (Operation *producer = input.getDefiningOp(); producer && producer->getBlock() == map->getBlock())
      producers.push_back(producer);
  llvm::stable_sort(producers, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  SmallVector<std::pair<Operation *, Refusal>> refused;
  for (Operation *producer : producers) {
    Refusal why;
    if (auto linear = dyn_cast<nn::LinearOp>(producer))
      why = intoLinear(linear, map);
    else if (auto grouped = dyn_cast<moe::GroupedLinearOp>(producer))
      why = intoPlain(grouped, grouped.getPair() ? 2 : 1, map);
    else if (auto conv = dyn_cast<attn::ShortConvOp>(producer))
      why = intoPlain(conv, 1, map);
    else
      continue;
    if (!why)
      return;
    refused.push_back({producer, why});
  }
  for (auto [producer, why] : refused)
    noteApart(map, producer, why);
}

} // namespace

void fuseEpilogues(ModuleOp module) {
  SmallVector<nn::MapOp> maps; // in program order: a chain of maps goes in one by one
  module.walk([&](nn::MapOp map) { maps.push_back(map); });
  for (nn::MapOp map : maps)
    fuseOne(map);
}

} // namespace k31
