// gate and up: act(x G^T, x U^T) as one product whose weight has rows of G and U in turns, 16 and 16.
//
// The layout belongs to the weight, so either all products with a weight stack are paired, in all buckets, or none.
#include "compiler/Transforms/FusedRegion.h"
#include "compiler/Transforms/Fusions.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Support/Notes.h"

using namespace mlir;

namespace k31 {
namespace {

constexpr int64_t kGroup = 16; // rows of one matrix before the other's turn: the kernels' vector

struct Pair {
  Operation *product;
  nn::MapOp map;
  int64_t cols; // of one matrix
  SmallVector<nn::WeightOp> weights;
};

// A stack of two equal parts whose products could be paired.
bool splitsInTwo(nn::StackOp stack, int64_t cols) {
  return stack && stack.getParts().size() == 2 && stack.getRows()[0] == cols && stack.getRows()[1] == cols &&
         stack.getInterleave() == 0;
}

// The map that reads both halves of a product whose weight is a stack of two equal parts, if there is one.
std::optional<Pair> findPair(Operation *op, SymbolTable &symbols) {
  SmallVector<Value> weights;
  if (auto linear = dyn_cast<nn::LinearOp>(op); linear && linear.getEpilogue().empty() && linear->getNumResults() == 1) {
    weights = {linear.getW()};
  } else if (auto grouped = dyn_cast<moe::GroupedLinearOp>(op); grouped && grouped.getEpilogue().empty()) {
    weights = {grouped.getW()};
    if (grouped.getScale())
      weights.push_back(grouped.getScale());
  } else {
    return std::nullopt;
  }
  Value result = op->getResult(0);
  Pair pair{op, nullptr, cast<RankedTensorType>(result.getType()).getDimSize(1) / 2, {}};
  for (Value weight : weights) {
    auto member = weight.getDefiningOp<nn::WeightOp>();
    if (!member || !splitsInTwo(symbols.lookup<nn::StackOp>(member.getStack()), pair.cols))
      return std::nullopt;
    pair.weights.push_back(member);
  }
  for (Operation *user : result.getUsers()) {
    auto half = dyn_cast<nn::ColumnsOp>(user);
    if (!half || half.getEnd() - half.getBegin() != static_cast<uint64_t>(pair.cols) || half.getBegin() % pair.cols != 0)
      return std::nullopt;
    for (Operation *reader : half->getUsers()) {
      auto map = dyn_cast<nn::MapOp>(reader);
      if (!map || (pair.map && map != pair.map))
        return std::nullopt;
      pair.map = map;
    }
  }
  return pair.map ? std::optional(pair) : std::nullopt;
}

// Why the two cannot be one product; null when they can.
const char *refusal(Pair pair) {
  if (pair.cols % kGroup != 0)
    return "rows of both matrices would be in turns of 16, and these are no multiple of 16";
  if (auto linear = dyn_cast<nn::LinearOp>(pair.product))
    return linear.getLive() == pair.map.getLive() ? nullptr : "the two count different live rows";
  auto isHalf = [&](Value input) {
    auto half = input.getDefiningOp<nn::ColumnsOp>();
    return half && half.getSource() == pair.product->getResult(0);
  };
  if (!llvm::all_of(pair.map.getInputs(), isHalf) || pair.map->getNumResults() != 1)
    return "the epilogue of experts takes sums alone, no further operands or results";
  return isRowsOfExperts(cast<moe::GroupedLinearOp>(pair.product).getOffsets(), pair.map.getLive())
             ? nullptr
             : "the two count different live rows";
}

void apply(const Pair &pair) {
  nn::MapOp map = pair.map;
  Location loc = pair.product->getLoc();
  Value product = pair.product->getResult(0);
  FusedRegion fused(loc);
  Value sums[2] = {fused.addSum(), fused.addSum()};
  SmallVector<Value> arguments;
  for (Value input : map.getInputs()) {
    auto half = input.getDefiningOp<nn::ColumnsOp>();
    bool own = half && half.getSource() == product;
    arguments.push_back(own ? sums[half.getBegin() != 0] : fused.argument(input));
  }
  fused.yield(fused.copy(map.getBody(), arguments));

  OpBuilder b(map);
  auto unit = b.getUnitAttr();
  Operation *created;
  if (auto linear = dyn_cast<nn::LinearOp>(pair.product)) {
    auto op = nn::LinearOp::create(b, loc, map.getResultTypes(), linear.getX(), linear.getW(), linear.getLive(), fused.operands(),
                                   unit, map.getFusedAttr());
    op.getEpilogue().takeBody(fused.get());
    created = op;
  } else {
    auto grouped = cast<moe::GroupedLinearOp>(pair.product);
    auto op = moe::GroupedLinearOp::create(b, loc, map.getResultTypes()[0], grouped.getX(), grouped.getW(), grouped.getScale(),
                                           grouped.getOffsets(), unit, map.getFusedAttr());
    op.getEpilogue().takeBody(fused.get());
    created = op;
  }
  noteFusion(created, pair.product, map, product);
  note(created, {"layout",
                 "rows of both matrices in turns, 16 and 16",
                 "a tile of the product holds both operands of the map, so that it runs on sums in registers",
                 {}});
  map.replaceAllUsesWith(created->getResults());
  map.erase();
  for (Operation *half : llvm::make_early_inc_range(product.getUsers()))
    half->erase();
  pair.product->erase();
}

} // namespace

void pairProducts(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<Pair> pairs;
  module.walk([&](Operation *op) {
    std::optional<Pair> pair = findPair(op, symbols);
    if (const char *why = pair ? refusal(*pair) : nullptr)
      noteApart(pair->map, op, why);
    else if (pair)
      pairs.push_back(*pair);
  });
  // A stack stays as it is when anything but a paired product reads it; then its products are not paired either, and so on.
  llvm::DenseSet<StringRef> kept;
  for (bool changed = true; changed;) {
    changed = false;
    llvm::DenseSet<std::pair<Operation *, Operation *>> reads; // (weight, product)
    for (const Pair &pair : pairs)
      for (nn::WeightOp weight : pair.weights)
        reads.insert({weight, pair.product});
    module.walk([&](nn::WeightOp weight) {
      for (Operation *user : weight->getUsers())
        if (!reads.contains({weight, user}))
          changed |= kept.insert(weight.getStack()).second;
    });
    llvm::erase_if(pairs, [&](Pair &pair) {
      bool drop = llvm::any_of(pair.weights, [&](nn::WeightOp weight) { return kept.contains(weight.getStack()); });
      changed |= drop;
      if (drop)
        noteApart(pair.map, pair.product, "another op reads the same weight as it is, with its parts one after the other");
      return drop;
    });
  }
  for (const Pair &pair : pairs)
    for (nn::WeightOp weight : pair.weights)
      symbols.lookup<nn::StackOp>(weight.getStack()).setInterleave(kGroup);
  for (const Pair &pair : pairs)
    apply(pair);
}

} // namespace k31
