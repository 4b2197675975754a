// A map or row whose result another one reads becomes part of it: the value in between is not stored, or stored beside the result
// where others read it too.
#include "codegen/Regions.h"
#include "compiler/Transforms/FusedRegion.h"
#include "compiler/Transforms/Fusions.h"
#include "compiler/Transforms/Rowwise.h"
#include "dialects/Moe/Moe.h"

using namespace mlir;

namespace k31 {
namespace {

// The fused op, or nothing and why not.
struct Outcome {
  Operation *created;
  const char *why;
};
Outcome refuse(const char *why) { return {nullptr, why}; }

Outcome fuse(const Rowwise &producer, const Rowwise &consumer) {
  if (producer.live != consumer.live)
    return refuse("the two count different live rows");
  if (producer.shape() != consumer.shape())
    return refuse("their rows have different lengths");
  if (producer.isRow && consumer.isRow && producer.groups != consumer.groups)
    return refuse("one sums over groups of columns and the other over other groups or whole rows");
  bool isRow = producer.isRow || consumer.isRow;
  int64_t groups = producer.isRow ? producer.groups : consumer.groups;
  Operation *place = placeOf(producer.op, consumer);
  if (!place)
    return refuse("others read the value before the rest of the operands is known");
  if (!producer.runsIn(groups) || !consumer.runsIn(groups))
    return refuse("an operand would broadcast in another way over the groups of columns");

  Location loc = consumer.op->getLoc();
  FusedRegion fused(loc);
  auto argument = [&](Value input) { return fused.argument(input); };
  SmallVector<Value> between = fused.copy(*producer.body, llvm::map_to_vector(producer.inputs, argument));
  SmallVector<Value> arguments;
  for (Value input : consumer.inputs)
    arguments.push_back(input.getDefiningOp() == producer.op ? between[cast<OpResult>(input).getResultNumber()]
                                                             : argument(input));
  SmallVector<Value> yielded = fused.copy(*consumer.body, arguments);
  SmallVector<Type> types(consumer.op->getResultTypes());
  SmallVector<OpResult> kept; // results of the producer that others read
  for (OpResult result : producer.op->getResults())
    if (llvm::any_of(result.getUsers(), [&](Operation *user) { return user != consumer.op; })) {
      kept.push_back(result);
      types.push_back(result.getType());
      yielded.push_back(between[result.getResultNumber()]);
    }
  fused.yield(yielded);
  constexpr size_t most = kernels::kMaxOperands;
  if (fused.operands().size() > most || types.size() > most || !findPhases(fused.get()).fits())
    return refuse("together they have more operands, sums or phases than a kernel takes");

  OpBuilder b(place);
  ArrayAttr names = joinFused(b.getContext(), {producer.fused, consumer.fused});
  Operation *created;
  if (isRow)
    created = nn::RowOp::create(b, loc, types, consumer.live, fused.operands(), names, groups);
  else
    created = nn::MapOp::create(b, loc, types, consumer.live, fused.operands(), names);
  created->getRegion(0).takeBody(fused.get());
  auto read = llvm::find_if(consumer.inputs, [&](Value input) { return input.getDefiningOp() == producer.op; });
  noteFusion(created, producer.op, consumer.op, *read, llvm::is_contained(kept, *read));
  size_t own = consumer.op->getNumResults();
  consumer.op->replaceAllUsesWith(created->getResults().take_front(own));
  consumer.op->erase();
  for (auto [result, replacement] : llvm::zip(kept, created->getResults().drop_front(own)))
    result.replaceAllUsesWith(replacement);
  producer.op->erase();
  return {created, nullptr};
}

// Maps and rows whose results `op` reads, the nearest first.
SmallVector<Operation *> producersOf(Operation *op) {
  SmallVector<Operation *> producers;
  for (Value input : Rowwise::of(op).inputs)
    if (Operation *producer = input.getDefiningOp(); Rowwise::of(producer).op && producer->getBlock() == op->getBlock())
      producers.push_back(producer);
  llvm::stable_sort(producers, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  return producers;
}

// One fusion of the consumer with any of its producers.
Operation *fuseOne(Operation *op) {
  for (Operation *producer : producersOf(op))
    if (Operation *created = fuse(Rowwise::of(producer), Rowwise::of(op)).created)
      return created;
  return nullptr;
}

// Says of what is left why it stayed apart. A fusion that others made possible since it was refused is made.
Operation *noteRefusals(Operation *op) {
  const Rowwise consumer = Rowwise::of(op);
  for (Operation *producer : producersOf(op)) {
    const Outcome outcome = fuse(Rowwise::of(producer), consumer);
    if (outcome.created)
      return outcome.created;
    noteApart(op, producer, outcome.why);
  }
  if (consumer.isRow)
    for (Value input : consumer.inputs)
      if (Operation *producer = input.getDefiningOp(); isa_and_nonnull<nn::LinearOp, moe::GroupedLinearOp>(producer))
        noteApart(op, producer, "a row sums over all of its columns, of which a tile of the product holds some");
  return nullptr;
}

} // namespace

void fuseRows(ModuleOp module) {
  module.walk([](Block *block) {
    for (auto step : {fuseOne, noteRefusals})
      for (Operation *op = block->empty() ? nullptr : &block->front(); op;) {
        Operation *created = Rowwise::of(op).op ? step(op) : nullptr;
        op = created ? created : op->getNextNode();
      }
  });
}

} // namespace k31
