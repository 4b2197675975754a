#include "compiler/Plan/Overlap.h"
#include "compiler/Plan/Commands.h"

using namespace mlir;

namespace k31::planir {
namespace {

// How far behind a collective its company is looked for: about a layer. Buffers of launches that move up live longer.
constexpr int kWindow = 24;

using Touches = SmallVector<Touch>;

bool conflict(const Touches &a, const Touches &b) {
  return llvm::any_of(a, [&](const Touch &x) { return llvm::any_of(b, [&](const Touch &y) { return x.conflicts(y); }); });
}

// The command, and what its operands are made of, in front of `place`.
void moveBefore(Operation *command, Operation *place) {
  for (Value operand : command->getOperands())
    if (Operation *definition = operand.getDefiningOp(); definition && place->isBeforeInBlock(definition))
      moveBefore(definition, place);
  command->moveBefore(place);
}

SmallVector<LaunchOp> gather(CollectiveOp collective) {
  SmallVector<LaunchOp> company;
  SmallVector<Touches> stay = {touchesOf(collective)};
  Operation *first = nullptr; // of those that stay behind the company
  int seen = 0;
  for (Operation *op = collective->getNextNode(), *next; op && seen < kWindow; op = next) {
    next = op->getNextNode();
    if (!streamOf(op))
      continue;
    ++seen;
    Touches touches = touchesOf(op);
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch || llvm::any_of(stay, [&](const Touches &other) { return conflict(touches, other); })) {
      stay.push_back(std::move(touches));
      if (!first)
        first = op;
      continue;
    }
    company.push_back(launch);
    if (first)
      moveBefore(launch, first);
  }
  return company;
}

} // namespace

SmallVector<Company> overlapCollectives(EntryOp entry) {
  SmallVector<CollectiveOp> collectives(entry.getBody().front().getOps<CollectiveOp>());
  SmallVector<Company> found;
  for (CollectiveOp collective : collectives)
    if (SmallVector<LaunchOp> launches = gather(collective); !launches.empty())
      found.push_back({collective, std::move(launches)});
  if (!found.empty())
    for (CollectiveOp collective : collectives)
      collective.setStream(kCollectiveStream);
  return found;
}

} // namespace k31::planir
