// Products of the same rows become one with a result for each: fewer launches, and the rows are read once.
//
// Their weights then lie one behind the other. That belongs to the weights and holds for all buckets: a stack is part of one
// merged stack at most. Where its neighbours are not at hand, a product reads its stack alone.
#include "codegen/Operands.h"
#include "codegen/kernels/common/row_operand.h"
#include "compiler/Transforms/Fusions.h"
#include "dialects/NN/NN.h"
#include "dialects/Support/Notes.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace k31 {
namespace {

constexpr int64_t kVector = 16; // columns that kernels store at once: results begin at multiples of it
constexpr int64_t kWord = 16;   // bytes; the fast forms of kernels read weights by aligned words of it

struct Product {
  nn::LinearOp op;
  nn::WeightOp weight;
  nn::StackOp stack;

  int64_t cols() { return dim(weight.getResult(), 0); }
};
using Group = SmallVector<Product>;
using Stacks = SmallVector<StringAttr>;

std::string nameOf(Operation *op) {
  auto named = dyn_cast<NameLoc>(op->getLoc());
  return named ? named.getName().str() : op->getName().getStringRef().str();
}

void noteAlone(Product product, Product from, const Twine &why) {
  note(product.op, {"apart", nameOf(product.op) + " from " + nameOf(from.op), why.str(), {}});
}

class Merger {
public:
  explicit Merger(ModuleOp module) : module(module), symbols(module) {}

  void run() {
    module.walk([&](Block *block) { collect(*block); });
    for (Group &group : chosen())
      merge(group);
  }

private:
  // Products of a block that multiply the same live rows, in groups that could be one.
  void collect(Block &block) {
    llvm::MapVector<std::pair<Value, Value>, Group> byRows;
    for (auto op : block.getOps<nn::LinearOp>())
      if (auto weight = op.getW().getDefiningOp<nn::WeightOp>())
        if (auto stack = symbols.lookup<nn::StackOp>(weight.getStack()))
          byRows[{op.getX(), op.getLive()}].push_back({op, weight, stack});
    for (auto &[rows, products] : byRows)
      while (!products.empty())
        products = takeGroup(products);
  }

  // Takes those that can be one with the first of them; the rest is returned, with notes why.
  Group takeGroup(const Group &products) {
    const auto first = llvm::find_if(products, [&](Product p) { return ownObstacle(p).empty(); });
    if (first == products.end())
      return {};
    Group group, rest;
    std::optional<Product> last; // of any number of columns: nothing begins behind it
    llvm::DenseSet<Operation *> stacks;
    for (Product p : products) {
      std::string why = obstacle(p, *first);
      if (why.empty() && stacks.contains(p.stack))
        why = "another one multiplies the same weight";
      else if (why.empty() && p.cols() % kVector && last)
        why = llvm::formatv("no result could begin behind its {0} columns, no multiple of {1}", p.cols(), kVector);
      else if (why.empty() && stacks.size() == kernels::kMaxOperands)
        why = llvm::formatv("a kernel stores {0} results", kernels::kMaxOperands);
      if (!why.empty()) {
        rest.push_back(p);
        if (noted.insert(p.op).second) // one reason is enough
          noteAlone(p, *first, why);
        continue;
      }
      stacks.insert(p.stack);
      if (p.cols() % kVector)
        last = p;
      else
        group.push_back(p);
    }
    if (last)
      group.push_back(*last);
    if (group.size() > 1)
      groups.push_back(group);
    return rest;
  }

  ArrayRef<int64_t> membersOf(nn::StackOp stack) {
    return symbols.lookup<nn::TensorOp>(cast<FlatSymbolRefAttr>(stack.getParts()[0]).getValue()).getMembers();
  }

  static std::string ownObstacle(Product p) {
    if (!p.op.getEpilogue().empty() || p.op->getNumResults() != 1)
      return "its epilogue runs on its own sums";
    if (p.stack.getInterleave())
      return "the rows of its weight are in turns";
    const RankedTensorType type = tensorOf(p.weight.getResult());
    if (const int64_t bits = type.getDimSize(1) * type.getElementTypeBitWidth(); bits % (8 * kWord))
      return llvm::formatv("a row of its weight has {0} bits, no whole words of {1} bytes", bits, kWord);
    return "";
  }

  // Why it cannot be one with the first one, which has no obstacle of its own.
  std::string obstacle(Product p, Product first) {
    if (std::string own = ownObstacle(p); !own.empty())
      return own;
    const RankedTensorType type = tensorOf(p.weight.getResult()), other = tensorOf(first.weight.getResult());
    if (type.getElementType() != other.getElementType()) {
      std::string text;
      llvm::raw_string_ostream(text) << "its weight holds " << type.getElementType() << ", the other " << other.getElementType();
      return text;
    }
    if (p.weight.getLayer() != first.weight.getLayer() || membersOf(p.stack) != membersOf(first.stack))
      return "its weight belongs to other layers";
    return "";
  }

  static Stacks stacksOf(const Group &group) {
    return llvm::map_to_vector(group, [](Product p) { return p.weight.getStackAttr().getAttr(); });
  }

  // The groups whose stacks can lie as they want: the longest first, and those that want the same.
  SmallVector<Group> chosen() {
    SmallVector<Group> out;
    llvm::DenseMap<StringAttr, Stacks> neighbours;
    size_t longest = 0;
    for (const Group &group : groups)
      longest = std::max(longest, group.size());
    for (size_t size = longest; size > 1; --size)
      for (const Group &group : groups)
        if (group.size() == size && place(group, neighbours))
          out.push_back(group);
    return out;
  }

  // Puts its stacks side by side, if none has other neighbours.
  bool place(const Group &group, llvm::DenseMap<StringAttr, Stacks> &neighbours) {
    const Stacks stacks = stacksOf(group);
    for (StringAttr stack : stacks)
      if (auto known = neighbours.find(stack); known != neighbours.end() && known->second != stacks) {
        for (Product p : ArrayRef(group).drop_front())
          noteAlone(p, group.front(), "other products need the weights beside others: @" + stack.getValue());
        return false;
      }
    for (StringAttr stack : stacks)
      neighbours[stack] = stacks;
    return true;
  }

  nn::MergedStackOp mergedStack(const Group &group) {
    const Stacks stacks = stacksOf(group);
    nn::MergedStackOp &known = merged[stacks.front()];
    if (known)
      return known;
    Product first = group.front();
    nn::StackOp last = first.stack;
    SmallVector<Attribute> names;
    int64_t rows = 0;
    for (Product p : group) {
      names.push_back(p.weight.getStackAttr());
      rows += p.cols();
      if (last->isBeforeInBlock(p.stack))
        last = p.stack;
    }
    OpBuilder b(module.getContext());
    b.setInsertionPointAfter(last);
    StringRef name = stacks.front().getValue();
    name.consume_front("stack.");
    const RankedTensorType type = tensorOf(first.weight.getResult());
    known = nn::MergedStackOp::create(b, first.stack.getLoc(), ("merged." + name).str(), b.getArrayAttr(names),
                                      RankedTensorType::get({rows, type.getDimSize(1)}, type.getElementType()));
    symbols.insert(known);
    return known;
  }

  void merge(Group &group) {
    nn::MergedStackOp stack = mergedStack(group);
    Product first = group.front();
    SmallVector<Type> types;
    SmallVector<Operation *> ops;
    std::string label, names;
    for (auto [i, p] : llvm::enumerate(group)) {
      if (p.op->isBeforeInBlock(first.op))
        first = p;
      types.push_back(p.op.getResultTypes()[0]);
      ops.push_back(p.op);
      label += (i ? "+" : "") + nameOf(p.op);
      names += (i == 0 ? "" : i + 1 == group.size() ? " and " : ", ") + nameOf(p.op);
    }
    const bool named = llvm::all_of(ops, [](Operation *op) { return isa<NameLoc>(op->getLoc()); });
    OpBuilder b(first.op);
    const Location loc = named ? NameLoc::get(b.getStringAttr(label)) : first.op.getLoc();
    auto w = nn::WeightOp::create(b, loc, cast<RankedTensorType>(stack.getType()), FlatSymbolRefAttr::get(stack.getSymNameAttr()),
                                  first.weight.getLayer());
    auto op = nn::LinearOp::create(b, loc, types, first.op.getX(), w, first.op.getLive(), ValueRange{}, false, ArrayAttr());
    inheritNotes(op, ops);
    note(op, {"merge",
              names,
              llvm::formatv("they multiply the same rows: {0} launch{1} less; their weights lie one behind the other",
                            group.size() - 1, group.size() == 2 ? "" : "es"),
              {}});
    for (auto [p, result] : llvm::zip(group, op.getResults())) {
      p.op.getResults().front().replaceAllUsesWith(result);
      p.op.erase();
    }
  }

  ModuleOp module;
  SymbolTable symbols;
  SmallVector<Group> groups;
  llvm::DenseSet<Operation *> noted;                    // products that stay apart from those before them
  llvm::DenseMap<StringAttr, nn::MergedStackOp> merged; // by the first stack
};

} // namespace

void mergeProducts(ModuleOp module) { Merger(module).run(); }

} // namespace k31
